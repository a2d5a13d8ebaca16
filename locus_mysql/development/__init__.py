"""For development and for showing: a private server, and the demo. Not part of a release."""
