"""Programs that show what locus-mysql does, each worth reading by itself; `ci/demo` runs them."""
