-- Reads a session of working memory, or writes to it if it still is as it was read. redis_operations.py documents the
-- keys, and makes the commands. Needs Redis 6.2 or later, or Valkey.
--
-- KEYS[1]: the session. ARGV: the token of a write (empty: a read), the stamp that the session must have, the time before
-- which the write must happen, the outcomes to record, the milliseconds since 1970 until which to keep the keys (empty:
-- forever), and the commands: each the number of its texts, and its texts, with the end of the key's name in the second
-- place. Returns the time, "done", "outdated" or "repeated", and the results.
local session, call = KEYS[1], redis.call
local token, stamp, valid_until, outcomes, kept = ARGV[1], ARGV[2], ARGV[3], ARGV[4], ARGV[5]
local clock = call('TIME')
local now = clock[1] * 1000000 + clock[2]
if token ~= '' then
  if call('EXISTS', session .. ':token:' .. token) == 1 then
    return {now, 'repeated'}
  end
  local state = call('HMGET', session, 'stamp', 'expires')
  local expired = state[2] and state[2] ~= '' and tonumber(state[2]) <= now
  if (expired and '0' or state[1] or '0') ~= stamp or now >= tonumber(valid_until) then
    return {now, 'outdated'}
  end
end

local own = {}

-- Copies an entry to the history.
function own.KEEP(_, field, copy)
  local entry = call('HGET', session .. ':entries', field)
  return entry and #entry > 28 and call('HSET', session .. ':history', copy, entry)
end

-- Replaces what stands before the value of an entry.
function own.USE(key, field, about)
  local entry = call('HGET', key, field)
  return entry and call('HSET', key, field, about .. string.sub(entry, 29))
end

-- Entries without their values: some by their fields, all with their fields, or about as many as a number.
local function cut(texts, step)
  for i = step, #texts, step do
    texts[i] = texts[i] and string.sub(texts[i], 1, 28)
  end
  return texts
end
function own.SIZES(key, ...)
  return cut(call('HMGET', key, ...), 1)
end
function own.ALLSIZES(key)
  return cut(call('HGETALL', key), 2)
end
function own.SOMESIZES(key, count)
  local found = call('HSCAN', key, 0, 'COUNT', count)
  return {found[1], cut(found[2], 2)}
end

-- Removes the history that no checkpoint with one of these stamps contains.
function own.PRUNE(key, ...)
  for _, copy in ipairs(call('HKEYS', key)) do
    local version, valid, needed = string.sub(copy, 2, 21), string.sub(copy, 22, 41), false
    for _, one in ipairs({...}) do
      needed = needed or (version <= one and one < valid)
    end
    if not needed then
      call('HDEL', key, copy)
    end
  end
end

-- The last notes.
function own.NOTES(key, count)
  local notes = {}
  for _, number in ipairs(call('ZRANGE', key, -count, -1)) do
    notes[#notes + 1] = '3' .. number
    notes[#notes + 1] = call('HGET', session .. ':entries', '3' .. number)
  end
  return notes
end

-- Starts the time to live again.
function own.RENEW(key)
  local ttl, expires = unpack(call('HMGET', key, 'ttl', 'expires'))
  if ttl and ttl ~= '' and tonumber(expires) > now then
    local renewed = now + ttl + math.floor(ttl / 8)
    call('HDEL', key, '')  -- after a write that needs no memory, Redis refuses none
    call('HSET', key, 'expires', string.format('%.0f', renewed))
    kept = math.ceil(renewed / 1000)
  end
end

local results, at = {}, 6
while at <= #ARGV do
  local last = at + ARGV[at]
  local name, key = ARGV[at + 1], session .. ARGV[at + 2]
  if own[name] then
    results[#results + 1] = own[name](key, unpack(ARGV, at + 3, last)) or false
  else
    results[#results + 1] = call(name, key, unpack(ARGV, at + 3, last))
  end
  at = last + 1
end
if kept ~= '' then
  for _, suffix in ipairs({'', ':entries', ':notes', ':checkpoints', ':history'}) do
    call('PEXPIREAT', session .. suffix, kept)
  end
end
if token ~= '' then
  call('SET', session .. ':token:' .. token, outcomes, 'PX', 900000)
end
return {now, 'done', results}
