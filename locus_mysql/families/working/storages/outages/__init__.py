"""What a storage needs to go on while another one is away: see `fallback`. Nothing in here asks a storage."""
