"""The chapter on turns: the double click, the closed browser tab and the crashed worker."""
