"""Chapter `langgraph`: a LangGraph graph that is interrupted, resumed in another process, and rewound.

Begin with `demo`. `graph` has the graph, `worker` the process that resumes it.
"""
