"""The scripts that README, developers and continuous integration call, and what they share."""
