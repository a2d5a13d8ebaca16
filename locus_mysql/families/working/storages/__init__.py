"""Where sessions are stored: MySQL, Redis or Valkey, this process's memory, and a fallback over two of these.

Each storage implements `interface.Storage` and carries out the commands of `families/working/calls`. Begin with
`interface`, then `session`, which defines each command on a value in memory, and `mysql_operations`. `outages` serves
`fallback`.
"""
