"""What works on the code itself: `make generated` writes what is made from other files."""
