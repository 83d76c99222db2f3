"""What both sides need to speak with an OpenStack cloud."""
