"""What people look at: pages of a release, of a plan, of a comparison, and the pictures in them."""
