"""A LangGraph graph that is interrupted, resumed in another process, and rewound."""
