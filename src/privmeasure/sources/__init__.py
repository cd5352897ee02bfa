"""Where rows live and are counted. Private."""
