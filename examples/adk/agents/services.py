"""ADK imports this file from the folder of the agents; it makes ``mysql+locus://`` known to it."""

from locus_mysql.integrations.google_adk import register_services

register_services()
