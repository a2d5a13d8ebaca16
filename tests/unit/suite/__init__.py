"""The benchmark suite itself: what it measures is what it says. No server is needed."""
