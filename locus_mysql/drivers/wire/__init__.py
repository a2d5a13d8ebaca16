"""Speaking MySQL's protocol: literals, commands, results, and the three ways of waiting for them."""
