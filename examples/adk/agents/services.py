"""Registers ``mysql+locus://`` with ADK, which imports this file from the folder of the agents."""

from locus_mysql.integrations.google_adk import register_services

register_services()
