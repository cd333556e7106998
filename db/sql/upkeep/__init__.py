"""What is done to a whole database: copies of it, looking it over, forgetting what is old."""
