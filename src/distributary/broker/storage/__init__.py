"""What a broker does about a disk that is full, and about messages that break it."""
