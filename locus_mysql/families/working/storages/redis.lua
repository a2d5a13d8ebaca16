-- Carries out one call on one session of working memory: all its commands, or none. calls.py documents
-- the commands; session.py does the same in Python. Needs Redis 6.2 or later, or Valkey.
--
-- KEYS[1] is the session; the names of all its keys begin with it, and its braces put them into one slot of a cluster:
--
--     (itself)       hash    stamp, ttl, expires, kept (until then Redis keeps the keys), bytes, task, task_version,
--                            notes_version, notes_bytes, notes_cut (the stamp of when notes were last removed),
--                            forgotten (deletions up to this stamp are no longer reported) and had (see below)
--     :values        hash    JSON by key
--     :canonical     hash    canonical form by key, where it is not the JSON
--     :versions      zset    the stamp of the last write, by key
--     :uses          zset    the stamp of the last use, by key; present once variables may be evicted
--     :expiries      zset    the time of expiry, by key; only of variables that expire
--     :deleted       zset    the stamp of the deletion, by key
--     :notes         list
--     :order         list    ids of checkpoints, oldest first
--     :checkpoints   hash    the description of a checkpoint, by id
--     :deltas        hash    the changes between the previous checkpoint and this one, by id
--     :base:…        copies of :values, :canonical, :versions, :expiries and :notes: the oldest checkpoint
--     :token:…       string  the reply to a call, by the call's token; it outlives the session
--
-- `had` contains the first letter of each of :canonical, :uses, :expiries and :deleted that has ever existed for the
-- session. The others need not be read.
--
-- Times are microseconds since 1970 by Redis' clock. They and stamps are below 2^53, which Lua's numbers hold exactly.
--
-- ARGV: numbers (how many commands write, how many variables were read before, whether a command begins a session,
-- whether to renew, whether variables may be evicted, whether it is the short form, if_stamp, the time to live of a
-- new session, and the limits: variables, bytes, notes, checkpoints) with the token behind them; the keys that were
-- read; and each command's name with its arguments. A number that is absent is -1, a text is empty then. The calls
-- made most are shorter, as each argument and each part of a reply takes the client's time: to read one variable is
-- its key alone; to write one that has no time to live is the numbers, its key, its value, and its canonical form unless
-- that is its value.
--
-- The reply: stamp, time to live (-1: none), how many variables were evicted, and the result of each command. If the
-- call was refused, so that nothing was changed, it begins with a word that says why. The replies to the two
-- short calls are documented there.

local call, session = redis.call, KEYS[1]
local values, expiries = session .. ':values', session .. ':expiries'

-- To read one variable: a line of stamp, time to live, and the time that the variable has left, and its value behind it
-- if it is there. That is one text, and what two parts of a reply would take the client is a tenth of the whole call.
if #ARGV == 1 then
  local state = call('HMGET', session, 'stamp', 'ttl', 'expires', 'had')
  if not state[1] then
    return '0 - -'
  end
  local value, expiry, left = call('HGET', values, ARGV[1]), false, '-'
  if value and string.find(state[4], 'e', 1, true) then
    expiry = call('ZSCORE', expiries, ARGV[1])
  end
  if expiry or state[3] ~= '' then
    local clock = call('TIME')
    local now = clock[1] * 1000000 + clock[2]
    if state[3] ~= '' and tonumber(state[3]) <= now then
      return '0 - -'
    end
    if expiry then
      left = string.format('%.0f', expiry - now)
      value = expiry - now > 0 and value
    end
  end
  local line = state[1] .. ' ' .. (state[2] == '' and '-' or state[2]) .. ' ' .. left
  return value and line .. '\n' .. value or line
end

local REPORTED = 3600000000   -- for how long deletions are reported, in microseconds
local RECOGNISED = 900000     -- for how long a repeated call is recognised, in milliseconds
local AT_ONCE = 1000          -- how many arguments a command of Redis is given at most

local writing, used, begins, renews, may_evict, short, if_stamp, new_ttl, most_keys, most_bytes, most_notes,
  most_checkpoints, token_at = struct.unpack('>I4I4BBBBdddddd', ARGV[1])
local token = string.sub(ARGV[1], token_at)

if writing > 0 and token ~= '' then
  local reply = call('GET', session .. ':token:' .. token)
  if reply then
    return cmsgpack.unpack(reply)
  end
end

local clock = call('TIME')
local now = clock[1] * 1000000 + clock[2]
local state = call(
  'HMGET', session, 'stamp', 'ttl', 'expires', 'bytes', 'kept', 'had', 'notes_bytes', 'forgotten', 'notes_version'
)
local stamp, ttl, expires, bytes = tonumber(state[1]), tonumber(state[2]), tonumber(state[3]), tonumber(state[4])
local kept, had, notes_version = tonumber(state[5]) or 0, state[6] or '', tonumber(state[9]) or 0
if expires and expires <= now then
  stamp, ttl, expires, kept, had = nil, nil, nil, 0, ''
end
local there = stamp ~= nil
if if_stamp >= 0 and if_stamp ~= (stamp or 0) then
  return {'stamp'}
end

local function has_had(letter)
  return string.find(had, letter, 1, true)
end

-- To write one variable: a text of stamp and time to live, where there is place, and no key of the session is new.
local arguments = ARGV
if short == 1 then
  local key, value, canonical = ARGV[2], ARGV[3], ARGV[4] or ''
  local keys, size_bytes, known = there and call('HLEN', values) or 0, 0, true
  if keys > 0 then
    local before = call('HSTRLEN', values, key)
    known = before > 0 or call('HEXISTS', values, key) == 1
    size_bytes = bytes + #value - before + (known and 0 or #key)
  end
  local fits = size_bytes <= most_bytes and keys + (known and 0 or 1) <= most_keys
  local kept_until = ttl and now + ttl + math.floor(ttl / 8)
  local prepared = (may_evict == 0 or has_had('u')) and (canonical == '' or has_had('c'))
  if keys > 0 and fits and prepared and (not ttl or kept_until <= kept) then
    stamp = math.max(stamp, now) + 1
    call('HSET', values, key, value)
    call('ZADD', session .. ':versions', stamp, key)
    call('HSET', session, 'stamp', stamp, 'expires', kept_until or '', 'bytes', size_bytes)
    if had ~= '' then
      if has_had('u') then
        call('ZADD', session .. ':uses', stamp, key)
      end
      if has_had('e') then
        call('ZREM', expiries, key)
      end
      if canonical ~= '' then
        local canonicals = session .. ':canonical'
        if call('HSET', canonicals, key, canonical) == 1 and ttl and call('PTTL', canonicals) == -1 then
          call('PEXPIREAT', canonicals, math.ceil(kept / 1000))
        end
      elseif has_had('c') then
        call('HDEL', session .. ':canonical', key)
      end
      if has_had('d') then
        call('ZREM', session .. ':deleted', key)
      end
    end
    local reply = string.format('%.0f %s', stamp, ttl and state[2] or '-')
    if token ~= '' then
      call('SET', session .. ':token:' .. token, cmsgpack.pack(reply), 'PX', RECOGNISED)
    end
    return reply
  end
  arguments = {ARGV[1], 'Write', '1', key, value, canonical, ''}
end

-- The place of the argument that was taken last.
local place = 1 + used

local function take()
  place = place + 1
  return arguments[place]
end

-- As many arguments as the next one says.
local function take_many()
  local many = {}
  for number = 1, take() do
    many[number] = take()
  end
  return many
end

-- Gives a list in parts that are short enough to be arguments.
local function in_parts(list, work)
  for first = 1, #list, AT_ONCE do
    work(unpack(list, first, math.min(first + AT_ONCE - 1, #list)))
  end
end

-- What is read --------------------------------------------------------------------------------------------------------

-- Each command that changes nothing, by name: its result. Of variables it may hold expired ones, with the time when
-- they expire and the time now: who asked leaves them out.
local reads = {}

function reads.Read()
  local keys = take_many()
  if not there then
    return {{}, {}, now}
  elseif #keys == 1 then
    return {{call('HGET', values, keys[1])}, {call('ZSCORE', expiries, keys[1])}, now}
  end
  local found, times = {}, {}
  in_parts(keys, function(...)
    for _, value in ipairs(call('HMGET', values, ...)) do
      found[#found + 1] = value
    end
  end)
  if call('EXISTS', expiries) == 1 then
    in_parts(keys, function(...)
      for _, time in ipairs(call('ZMSCORE', expiries, ...)) do
        times[#times + 1] = time
      end
    end)
  end
  return {found, times, now}
end

function reads.ReadAll()
  if not there then
    return {{}, {}, now}
  end
  return {call('HGETALL', values), call('ZRANGE', expiries, 0, -1, 'WITHSCORES'), now}
end

function reads.ListKeys()
  if not there then
    return {{}, {}}
  end
  return {call('HKEYS', values), call('ZRANGEBYSCORE', expiries, '-inf', now)}
end

function reads.ReadTask()
  return there and call('HGET', session, 'task')
end

function reads.ReadNotes()
  local last = take()
  if not there or last == '0' then
    return {}
  end
  return call('LRANGE', session .. ':notes', last == '' and 0 or '-' .. last, -1)
end

function reads.ListCheckpoints()
  local listed = {}
  if there then
    for _, id in ipairs(call('LRANGE', session .. ':order', 0, -1)) do
      local info = cmsgpack.unpack(call('HGET', session .. ':checkpoints', id))
      listed[#listed + 1] = {id, info.label, info.at, info.keys, info.notes, info.bytes}
    end
  end
  return listed
end

function reads.Measure()
  if not there then
    return {0, 0, 0, 0, false}
  end
  local keys, size_bytes = call('HLEN', values), bytes
  for _, key in ipairs(call('ZRANGEBYSCORE', expiries, '-inf', now)) do
    keys, size_bytes = keys - 1, size_bytes - #key - call('HSTRLEN', values, key)
  end
  local notes, checkpoints = call('LLEN', session .. ':notes'), call('LLEN', session .. ':order')
  return {keys, size_bytes, notes, checkpoints, expires and expires - now}
end

function reads.Inspect()
  local everything, keys = take() == '1', take_many()
  if not there then
    return {{}, 0, 0}
  end
  local known = {}
  local function report(zset, least)
    if everything then
      for _, part in ipairs(call('ZRANGEBYSCORE', zset, string.format('%.0f', least), '+inf', 'WITHSCORES')) do
        known[#known + 1] = part
      end
      return
    end
    for _, key in ipairs(keys) do
      local version = call('ZSCORE', zset, key)
      if version and tonumber(version) >= least then
        known[#known + 1] = key
        known[#known + 1] = version
      end
    end
  end
  report(session .. ':deleted', now - REPORTED + 1)
  report(session .. ':versions', 0)
  return {known, tonumber(call('HGET', session, 'task_version') or 0), notes_version}
end

-- How long it is kept -------------------------------------------------------------------------------------------------

local NAMES = {
  '', ':values', ':canonical', ':versions', ':uses', ':expiries', ':deleted', ':notes', ':order', ':checkpoints',
  ':deltas', ':base:values', ':base:canonical', ':base:versions', ':base:expiries', ':base:notes',
}

-- Gives the session its whole time again: an eighth more than its time to live, as in calls.py.
local function renew()
  expires = ttl and now + ttl + math.floor(ttl / 8)
end

-- Has Redis keep the session's keys until it expires, and for an eighth longer, so that most calls need not change it.
-- `changed` are the names of keys that may be new.
local function keep(changed)
  if not ttl then
    return
  end
  if expires > kept or kept > expires + 2 * ttl then
    kept = expires + math.floor(ttl / 8) + 1000
    call('HSET', session, 'kept', kept)
    for _, name in ipairs(NAMES) do
      call('PEXPIREAT', session .. name, math.ceil(kept / 1000))
    end
    return
  end
  for name in pairs(changed) do
    if call('PTTL', session .. name) == -1 then
      call('PEXPIREAT', session .. name, math.ceil(kept / 1000))
    end
  end
end

-- Redis asks of the first command of a script that writes, and only of that, whether there is memory for it. So a call
-- that may need more begins with a command that does nothing and is refused then; another one with a command that is
-- never refused, so that reading, deleting and ending go on.
local function ask_for_memory(needed)
  if needed then
    call('SETRANGE', session .. ':nothing', 0, '')
  else
    call('UNLINK', session .. ':nothing')
  end
end

if writing == 0 then
  if there and renews == 1 and ttl then
    ask_for_memory(false)
    renew()
    call('HSET', session, 'expires', expires)
    keep({})
  end
  local reply = {stamp or 0, ttl or -1, 0}
  while place < #arguments do
    reply[#reply + 1] = reads[take()]()
  end
  return reply
end

if not there and begins == 0 then
  local nothing = {
    Remove = function() take_many() return 0 end,
    Clear = function() return 0 end,
    ClearNotes = function() return 0 end,
    Touch = function() take() return 0 end,
    DeleteCheckpoint = function() take() return 0 end,
    End = function()
      ask_for_memory(false)
      for _, name in ipairs(NAMES) do
        call('UNLINK', session .. name)
      end
      return 0
    end,
  }
  local reply = {0, -1, 0}
  while place < #arguments do
    local name = take()
    if name == 'RestoreCheckpoint' then
      return {'no_checkpoint', take()}
    end
    reply[#reply + 1] = (reads[name] or nothing[name])()
  end
  return reply
end

-- What is written -----------------------------------------------------------------------------------------------------

local notes, canonicals, versions = session .. ':notes', session .. ':canonical', session .. ':versions'
local uses, deleted = session .. ':uses', session .. ':deleted'
local notes_bytes, forgotten, evicted, ended = 0, 0, 0, false

-- Notes that the session has one of the keys that few sessions have, by its first letter.
local function have(letter)
  if not has_had(letter) then
    had = had .. letter
  end
end

ask_for_memory(begins == 1)
if there then
  notes_bytes, forgotten = tonumber(state[7]), tonumber(state[8])
else
  -- What Redis left of a session of this name: it may have evicted single keys, if it was configured to.
  for _, name in ipairs(NAMES) do
    call('UNLINK', session .. name)
  end
  there, stamp, ttl, bytes, notes_version = true, 0, new_ttl >= 0 and new_ttl or nil, 0, 0
end

-- Which of the session's keys are changed. Where several commands write, a key is copied before it is changed, and put
-- back if a later command is refused; a command that stands alone is refused before it changes anything.
local changed, copied = {}, {}

local function change(name)
  if not changed[name] then
    changed[name] = true
    if writing > 1 then
      call('UNLINK', session .. ':before' .. name)
      copied[name] = call('COPY', session .. name, session .. ':before' .. name)
    end
  end
end

local function put_back()
  for name, there_before in pairs(copied) do
    if there_before == 1 then
      call('RENAME', session .. ':before' .. name, session .. name)
    else
      call('UNLINK', session .. name)
    end
  end
end

-- Removes a variable, and remembers that it was deleted with this stamp.
local function forget(key, version)
  for _, name in ipairs({':values', ':canonical', ':versions', ':uses', ':expiries', ':deleted'}) do
    change(name)
  end
  bytes = bytes - #key - call('HSTRLEN', values, key)
  if version > now - REPORTED then
    have('d')
    call('ZADD', deleted, version, key)
  end
  call('HDEL', values, key)
  call('HDEL', canonicals, key)
  call('ZREM', versions, key)
  call('ZREM', uses, key)
  call('ZREM', expiries, key)
end

-- Stops reporting old deletions.
local function forget_deletions()
  if call('ZREMRANGEBYSCORE', deleted, '-inf', now - REPORTED) > 0 then
    forgotten = now - REPORTED
  end
end

-- Keys that the call wrote: these are not evicted.
local written = {}

-- Notes that a variable was written: all but its JSON, and when it expires.
local function wrote(key, canonical)
  change(':versions')
  call('ZADD', versions, stamp, key)
  if has_had('u') then
    change(':uses')
    call('ZADD', uses, stamp, key)
  end
  if has_had('d') then
    change(':deleted')
    call('ZREM', deleted, key)
  end
  if canonical ~= '' then
    have('c')
    change(':canonical')
    call('HSET', canonicals, key, canonical)
  elseif has_had('c') then
    change(':canonical')
    call('HDEL', canonicals, key)
  end
  written[key] = true
end

-- Writes a variable; `expiry` is when it expires, or nil. An empty canonical form means that the JSON is canonical.
local function put(key, value, canonical, expiry)
  change(':values')
  call('HSET', values, key, value)
  if expiry then
    have('e')
    change(':expiries')
    call('ZADD', expiries, expiry, key)
  elseif has_had('e') then
    change(':expiries')
    call('ZREM', expiries, key)
  end
  wrote(key, canonical)
end

-- The bytes of a variable; nil if it does not exist.
local function size(key)
  local length = call('HSTRLEN', values, key)
  if length > 0 or call('HEXISTS', values, key) == 1 then
    return #key + length
  end
end

-- Makes room for a number of variables and bytes. Returns nil, or the reason why it cannot; then nothing is changed.
local function make_room(keys, size_bytes)
  if keys <= most_keys and size_bytes <= most_bytes then
    return
  end
  local leaving = {}
  if may_evict == 1 then
    local start, old = 0, nil
    repeat
      old = call('ZRANGE', uses, start, start + AT_ONCE - 1)
      start = start + AT_ONCE
      for _, key in ipairs(old) do
        if keys <= most_keys and size_bytes <= most_bytes then
          break
        end
        if not written[key] then
          leaving[#leaving + 1] = key
          keys, size_bytes = keys - 1, size_bytes - size(key)
        end
      end
    until #old == 0 or (keys <= most_keys and size_bytes <= most_bytes)
  end
  if keys > most_keys then
    return {'limit', 'max_keys', keys, most_keys}
  end
  if size_bytes > most_bytes then
    return {'limit', 'max_session_bytes', size_bytes, most_bytes}
  end
  for _, key in ipairs(leaving) do
    forget(key, stamp)
  end
  evicted = evicted + #leaving
end

-- Each command that writes, by name: its result, or false and why it is refused.
local commands = {}

function commands.Write()
  local wanted = {}
  for _ = 1, take() do
    local key = take()
    wanted[key] = {value = take(), canonical = take(), ttl = take()}
    written[key] = true
  end
  local keys, size_bytes = call('HLEN', values), bytes
  for key, one in pairs(wanted) do
    local before = size(key)
    if not before then
      keys = keys + 1
    end
    size_bytes = size_bytes + #key + #one.value - (before or 0)
  end
  local more = size_bytes - bytes
  local refusal = make_room(keys, size_bytes)
  if refusal then
    return false, refusal
  end
  bytes = bytes + more
  for key, one in pairs(wanted) do
    put(key, one.value, one.canonical, one.ttl ~= '' and now + one.ttl or nil)
  end
  return 0
end

function commands.Remove()
  local gone = 0
  for _, key in ipairs(take_many()) do
    if size(key) then
      gone = gone + 1
      forget(key, stamp)
    end
  end
  forget_deletions()
  return gone
end

function commands.Clear()
  local keys = call('HKEYS', values)
  have('d')
  change(':deleted')
  local deletions = {}
  for _, key in ipairs(keys) do
    deletions[#deletions + 1] = stamp
    deletions[#deletions + 1] = key
  end
  in_parts(deletions, function(...)
    call('ZADD', deleted, ...)
  end)
  for _, name in ipairs({':values', ':canonical', ':versions', ':uses', ':expiries'}) do
    change(name)
    call('UNLINK', session .. name)
  end
  bytes = notes_bytes + call('HSTRLEN', session, 'task')
  forget_deletions()
  return #keys
end

function commands.Increment()
  local key, by = take(), take()
  change(':values')
  local before, keys = call('HGET', values, key), call('HLEN', values)
  local answer = redis.pcall('HINCRBY', values, key, by)
  if type(answer) == 'table' then
    if string.find(answer.err, 'overflow', 1, true) or string.find(answer.err, 'out of range', 1, true) then
      return false, {'out_of_range', key, by}
    elseif string.find(answer.err, 'not an integer', 1, true) then
      return false, {'not_a_whole_number', key}
    end
    return false, answer
  end
  local number = call('HGET', values, key)
  written[key] = true
  local more = #number - (before and #before or -#key)
  local refusal = make_room(before and keys or keys + 1, bytes + more)
  if refusal then
    if before then
      call('HSET', values, key, before)
    else
      call('HDEL', values, key)
    end
    return false, refusal
  end
  bytes = bytes + more
  wrote(key, '')
  return number
end

function commands.CompareAndSet()
  local key, value, canonical, absent, expected = take(), take(), take(), take() == '1', take()
  local before = call('HGET', values, key)
  if absent and before or not absent and not before then
    return 0
  end
  if before and (call('HGET', canonicals, key) or before) ~= expected then
    return 0
  end
  written[key] = true
  local keys, more = call('HLEN', values), #value - (before and #before or -#key)
  local refusal = make_room(before and keys or keys + 1, bytes + more)
  if refusal then
    return false, refusal
  end
  bytes = bytes + more
  change(':values')
  call('HSET', values, key, value)
  wrote(key, canonical)
  return 1
end

function commands.WriteTask()
  local there_is, value = take() == '1', take()
  local more = #value - call('HSTRLEN', session, 'task')
  local refusal = make_room(call('HLEN', values), bytes + more)
  if refusal then
    return false, refusal
  end
  bytes = bytes + more
  change('')
  if there_is then
    call('HSET', session, 'task', value, 'task_version', stamp)
  else
    call('HSET', session, 'task_version', stamp)
    call('HDEL', session, 'task')
  end
  return 0
end

function commands.Append()
  local note = take()
  local count = call('LLEN', notes) + 1
  if count > most_notes then
    return false, {'limit', 'max_scratchpad_entries', count, most_notes}
  end
  local refusal = make_room(call('HLEN', values), bytes + #note)
  if refusal then
    return false, refusal
  end
  change(':notes')
  call('RPUSH', notes, note)
  bytes, notes_bytes, notes_version = bytes + #note, notes_bytes + #note, stamp
  return 0
end

function commands.ClearNotes()
  local gone = call('LLEN', notes)
  change(':notes')
  change('')
  call('HSET', session, 'notes_cut', stamp)
  call('UNLINK', notes)
  bytes, notes_bytes, notes_version = bytes - notes_bytes, 0, stamp
  return gone
end

function commands.Touch()
  local other = take()
  if other ~= '' then
    ttl = tonumber(other)
  end
  renew()
  return 1
end

function commands.End()
  ended = true
  return 1
end

-- Checkpoints ---------------------------------------------------------------------------------------------------------
--
-- The oldest checkpoint is a copy of the session. Each other one is a delta: what changed since the one before, as
--
--     whole      whether it stands for itself, as deletions since the one before are not known any more
--     variables  by key {JSON, canonical, when it expires (0: never), version}, or false for one that was deleted
--     task       false if it was removed; nil if it did not change
--     cut        whether notes were removed, so that `notes` are all
--     notes      those behind the ones of the checkpoint before
--
-- A delta may hold, or miss the deletion of, variables that had expired: restoring leaves these out.
--
-- All this is defined when first asked for, as most calls do without.

local function define_checkpoints()
  local order, checkpoints, deltas = session .. ':order', session .. ':checkpoints', session .. ':deltas'
  local BASE = {':values', ':canonical', ':versions', ':expiries', ':notes'}

  local function change_checkpoints()
    for _, name in ipairs({
      ':order', ':checkpoints', ':deltas',
      ':base:values', ':base:canonical', ':base:versions', ':base:expiries', ':base:notes',
    }) do
      change(name)
    end
  end

  local function info_of(id)
    local packed = call('HGET', checkpoints, id)
    return packed and cmsgpack.unpack(packed)
  end

  local function delta_of(id)
    return cmsgpack.unpack(call('HGET', deltas, id))
  end

  local function store_delta(id, delta)
    call('HSET', deltas, id, cmsgpack.pack(delta))
  end

  local function push(list, items)
    in_parts(items, function(...)
      call('RPUSH', list, ...)
    end)
  end

  -- A variable as a delta holds it.
  local function record(prefix, key)
    return {
      call('HGET', prefix .. ':values', key),
      call('HGET', prefix .. ':canonical', key) or '',
      tonumber(call('ZSCORE', prefix .. ':expiries', key) or 0),
      tonumber(call('ZSCORE', prefix .. ':versions', key)),
    }
  end

  -- What changed since a checkpoint.
  local function delta_since(info)
    local since, delta = '(' .. string.format('%.0f', info.stamp), {variables = {}, notes = {}}
    local state_then = call('HMGET', session, 'task_version', 'task', 'notes_cut')
    if forgotten > info.stamp then
      delta.whole, since = true, '-inf'
    else
      for _, key in ipairs(call('ZRANGEBYSCORE', deleted, since, '+inf')) do
        delta.variables[key] = false
      end
    end
    for _, key in ipairs(call('ZRANGEBYSCORE', versions, since, '+inf')) do
      delta.variables[key] = record(session, key)
    end
    if (tonumber(state_then[1]) or 0) > info.stamp then
      delta.task = state_then[2]
    end
    delta.cut = (tonumber(state_then[3]) or 0) > info.stamp
    delta.notes = call('LRANGE', notes, delta.cut and 0 or info.notes, -1)
    return delta
  end

  -- Writes the delta of a checkpoint into the copy of the session that is the one before.
  local function into_base(delta, info)
    local base = session .. ':base'
    local function remove(key)
      call('HDEL', base .. ':values', key)
      call('HDEL', base .. ':canonical', key)
      call('ZREM', base .. ':versions', key)
      call('ZREM', base .. ':expiries', key)
    end
    if delta.whole then
      call('UNLINK', base .. ':values', base .. ':canonical', base .. ':versions', base .. ':expiries')
    end
    for key, one in pairs(delta.variables) do
      remove(key)
      if one then
        call('HSET', base .. ':values', key, one[1])
        call('ZADD', base .. ':versions', one[4], key)
        if one[2] ~= '' then
          call('HSET', base .. ':canonical', key, one[2])
        end
        if one[3] > 0 then
          call('ZADD', base .. ':expiries', one[3], key)
        end
      end
    end
    for _, key in ipairs(call('ZRANGEBYSCORE', base .. ':expiries', '-inf', info.at)) do
      remove(key)
    end
    if delta.cut then
      call('UNLINK', base .. ':notes')
    end
    push(base .. ':notes', delta.notes)
  end

  -- Joins the deltas of two checkpoints, one behind the other, into that of the second.
  local function joined(first, second, info)
    if not second.whole then
      for key, one in pairs(first.variables) do
        if second.variables[key] == nil then
          second.variables[key] = one and not (one[3] > 0 and one[3] <= info.at) and one
        end
      end
      second.whole = first.whole
    end
    if second.task == nil then
      second.task = first.task
    end
    if not second.cut then
      for _, note in ipairs(second.notes) do
        first.notes[#first.notes + 1] = note
      end
      second.notes, second.cut = first.notes, first.cut
    end
    return second
  end

  -- Deletes a checkpoint; what those behind it build on, the next one inherits.
  local function drop(id)
    local ids = call('LRANGE', order, 0, -1)
    for number, other in ipairs(ids) do
      if other == id then
        change_checkpoints()
        local next_id = ids[number + 1]
        if next_id and number == 1 then
          local delta = delta_of(next_id)
          into_base(delta, info_of(next_id))
          local task = delta.task
          if task == nil then
            task = delta_of(id).task
          end
          store_delta(next_id, {task = task})
        elseif next_id then
          store_delta(next_id, joined(delta_of(id), delta_of(next_id), info_of(next_id)))
        elseif number == 1 then
          for _, name in ipairs(BASE) do
            call('UNLINK', session .. ':base' .. name)
          end
        end
        call('HDEL', deltas, id)
        call('HDEL', checkpoints, id)
        call('LREM', order, 1, id)
        return 1
      end
    end
    return 0
  end

  -- Keeps the session as it is now; the oldest checkpoints go if there are too many, but not `spared`.
  local function keep_checkpoint(id, label, spared)
    change_checkpoints()
    local last = call('LINDEX', order, -1)
    local info = {
      label = label, at = now, keys = call('HLEN', values), notes = call('LLEN', notes), bytes = bytes,
      notes_bytes = notes_bytes, stamp = stamp,
    }
    if last then
      store_delta(id, delta_since(info_of(last)))
    else
      store_delta(id, {task = call('HGET', session, 'task')})
      for _, name in ipairs(BASE) do
        call('UNLINK', session .. ':base' .. name)
        call('COPY', session .. name, session .. ':base' .. name)
      end
    end
    call('HSET', checkpoints, id, cmsgpack.pack(info))
    call('RPUSH', order, id)
    while call('LLEN', order) > most_checkpoints do
      local oldest = call('LINDEX', order, 0)
      if oldest == spared then
        oldest = call('LINDEX', order, 1)
      end
      if oldest == id then
        break
      end
      drop(oldest)
    end
  end

  function commands.CreateCheckpoint()
    local id, labelled, label = take(), take() == '1', take()
    if call('HEXISTS', checkpoints, id) == 1 then
      return false, {'checkpoint_exists', id}
    end
    keep_checkpoint(id, labelled and label)
    return 0
  end

  -- Makes the variables those of a checkpoint: by key the version, when it expires, and the record if a delta has it.
  local function restore_variables(wanted, at)
    local have = {}
    local current = call('ZRANGE', versions, 0, -1, 'WITHSCORES')
    for number = 1, #current, 2 do
      have[current[number]] = tonumber(current[number + 1])
    end
    for key in pairs(have) do
      if not wanted[key] then
        forget(key, stamp)
      end
    end
    for key, one in pairs(wanted) do
      if have[key] ~= one.version or one.expiry > 0 then
        local full = one.record or record(session .. ':base', key)
        bytes = bytes + #key + #full[1] - (size(key) or 0)
        put(key, full[1], full[2], one.expiry > 0 and now + one.expiry - at or nil)
      end
    end
  end

  function commands.RestoreCheckpoint()
    local id, undo, label = take(), take(), take()
    local info = info_of(id)
    if not info then
      return false, {'no_checkpoint', id}
    end
    if call('HEXISTS', checkpoints, undo) == 1 then
      return false, {'checkpoint_exists', undo}
    end
    keep_checkpoint(undo, label, id)
    stamp = stamp + 1

    local wanted, task, notes_behind = {}, nil, {}
    local base = session .. ':base'
    local cut = false
    local function want(key, version, expiry, full)
      wanted[key] = (expiry == 0 or expiry > info.at) and {version = version, expiry = expiry, record = full} or nil
    end
    for number, one in ipairs(call('LRANGE', order, 0, -1)) do
      local delta = delta_of(one)
      if number == 1 then
        local expires_of, times = {}, call('ZRANGE', base .. ':expiries', 0, -1, 'WITHSCORES')
        for part = 1, #times, 2 do
          expires_of[times[part]] = tonumber(times[part + 1])
        end
        local first = call('ZRANGE', base .. ':versions', 0, -1, 'WITHSCORES')
        for part = 1, #first, 2 do
          want(first[part], tonumber(first[part + 1]), expires_of[first[part]] or 0)
        end
      else
        if delta.whole then
          wanted = {}
        end
        for key, full in pairs(delta.variables) do
          if full then
            want(key, full[4], full[3], full)
          else
            wanted[key] = nil
          end
        end
        if delta.cut then
          cut, notes_behind = true, {}
        end
        for _, note in ipairs(delta.notes) do
          notes_behind[#notes_behind + 1] = note
        end
      end
      if delta.task ~= nil then
        task = delta.task
      end
      if one == id then
        break
      end
    end

    restore_variables(wanted, info.at)
    change(':notes')
    change('')
    local cut_since = (tonumber(call('HGET', session, 'notes_cut')) or 0) > info.stamp
    if cut_since or call('LLEN', notes) ~= info.notes then
      call('HSET', session, 'notes_cut', stamp)
      if cut_since then
        call('UNLINK', notes)
        if not cut then
          call('COPY', base .. ':notes', notes)
        end
        push(notes, notes_behind)
      elseif info.notes == 0 then
        call('UNLINK', notes)
      else
        call('LTRIM', notes, 0, info.notes - 1)
      end
      bytes, notes_bytes, notes_version = bytes - notes_bytes + info.notes_bytes, info.notes_bytes, stamp
    end
    local task_now = call('HGET', session, 'task')
    if task_now ~= task then
      bytes = bytes + (task and #task or 0) - (task_now and #task_now or 0)
      call('HSET', session, 'task_version', stamp)
      if task then
        call('HSET', session, 'task', task)
      else
        call('HDEL', session, 'task')
      end
    end
    return 0
  end

  function commands.DeleteCheckpoint()
    return drop(take())
  end
end

setmetatable(commands, {__index = function(_, name)
  define_checkpoints()
  return rawget(commands, name)
end})

-- The call ------------------------------------------------------------------------------------------------------------

-- From the first call on that may evict, uses are kept; until then they are what versions are.
if may_evict == 1 and not has_had('u') then
  have('u')
  change(':uses')
  call('ZUNIONSTORE', uses, 1, versions)
end

local expired = has_had('e') and call('ZRANGEBYSCORE', expiries, '-inf', now) or {}
for _, key in ipairs(expired) do
  forget(key, tonumber(call('ZSCORE', versions, key)))
end
if #expired > 0 then
  change('')
  call('HSET', session, 'bytes', bytes, 'had', had)
end

stamp = math.max(stamp + used, now)
local used_before = {}
for number = 1, used do
  local key = arguments[1 + number]
  local before = call('ZSCORE', uses, key)
  if before then
    used_before[key] = before
    call('ZADD', uses, stamp - used + number, key)
  end
end
renew()

local reply = {0, -1, 0}
while place < #arguments do
  local name = take()
  if reads[name] then
    reply[#reply + 1] = reads[name]()
  else
    stamp = stamp + 1
    local result, refusal = commands[name]()
    if refusal then
      put_back()
      for key, before in pairs(used_before) do
        call('ZADD', uses, 'XX', before, key)
      end
      ttl, expires = tonumber(state[2]), tonumber(state[3])
      keep(changed)
      return refusal
    end
    reply[#reply + 1] = result
  end
end

for name in pairs(copied) do
  call('UNLINK', session .. ':before' .. name)
end
if ended then
  for _, name in ipairs(NAMES) do
    call('UNLINK', session .. name)
  end
else
  changed[''] = true
  call(
    'HSET', session, 'stamp', stamp, 'ttl', ttl or '', 'expires', expires or '', 'bytes', bytes,
    'notes_bytes', notes_bytes, 'forgotten', forgotten, 'had', had, 'notes_version', notes_version
  )
  keep(changed)
  reply[1], reply[2], reply[3] = stamp, ttl or -1, evicted
end
if token ~= '' then
  call('SET', session .. ':token:' .. token, cmsgpack.pack(reply), 'PX', RECOGNISED)
end
return reply
