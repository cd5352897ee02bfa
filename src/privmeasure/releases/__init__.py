"""What anyone may see: released measures, their rows, their answers, their files."""
