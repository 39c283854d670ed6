-- Wireshark dissector for ncmesh frames, version 2 (docs/reference/wire-format.md). How to load
-- it: docs/guide/traces.md.
--
-- How bodies are laid out is in ncmesh_frames.lua, beside this file, which is generated from the
-- descriptions of frames in the crates.
--
-- It takes Ethertype 0x88B5, which `ncmesh simulate --pcap` writes and daemons use, and UDP port
-- 7117, which daemons use.
-- It shows the header of sealed frames, and all of frames under the null cipher
-- (`--unsealed`), which have a tag of zeros. Runs under Lua 5.2 to 5.4, so without bit operators.

local ETHERTYPE = 0x88B5
local UDP_PORT = 7117
local MARK = 0xC
local VERSION = 2
local HEADER_LEN = 23
local TAG_LEN = 16
local BACKGROUND = 0x80
local SIGNED = 0x40
local SIGNATURE_LEN = 64
local SHORTEST = HEADER_LEN + 2 + TAG_LEN
-- Ethernet pads shorter payloads, so a daemon writes the length before a frame that is shorter.
local SHORTEST_PAYLOAD = 46

local here = debug.getinfo(1, "S").source:match("^@(.*[/\\])") or ""
local frames = dofile(here .. "ncmesh_frames.lua")
local SERVICES, LAYOUTS = frames.services, frames.layouts

local ncmesh = Proto("ncmesh", "ncmesh")

-- ---- fields

local service_names = {}
for id, service in pairs(SERVICES) do service_names[id] = service[1] end

local fields = {
  mark = ProtoField.uint8("ncmesh.mark", "Mark", base.HEX, nil, 0xF0),
  version = ProtoField.uint8("ncmesh.version", "Version", base.DEC, nil, 0x0F),
  sender = ProtoField.uint16("ncmesh.sender", "Sender"),
  salt = ProtoField.bytes("ncmesh.salt", "Salt"),
  counter = ProtoField.uint32("ncmesh.counter", "Counter"),
  sealed = ProtoField.bytes("ncmesh.sealed", "Encrypted body"),
  tag = ProtoField.bytes("ncmesh.tag", "Tag"),
  service = ProtoField.uint8("ncmesh.service", "Service", base.DEC, service_names),
  background = ProtoField.bool("ncmesh.background", "Background", 8, nil, BACKGROUND),
  signed = ProtoField.bool("ncmesh.signed", "Signed", 8, nil, SIGNED),
  kind = ProtoField.uint8("ncmesh.kind", "Kind", base.DEC, nil, 0xFF - BACKGROUND - SIGNED),
  signature = ProtoField.bytes("ncmesh.signature", "Signature of the statement"),
  type = ProtoField.string("ncmesh.type", "Type"),
  ["flow.source"] = ProtoField.uint16("ncmesh.flow.source", "Source"),
  ["flow.serial"] = ProtoField.uint32("ncmesh.flow.serial", "Serial", base.HEX),
}

-- The label of a field that is worked out, from its name.
local function title(name)
  local word = name:match("[^.]+$")
  return word:sub(1, 1):upper() .. word:sub(2)
end

-- How Wireshark is told of a part: part to type of its field and what else that needs.
local NUMBERS = { [1] = "uint8", [2] = "uint16", [4] = "uint32", [8] = "uint64" }
local FLAGS = {}
for place = 0, 7 do FLAGS[2 ^ place] = true end
local KINDS = {
  number = function(p) return NUMBERS[p[4]], p.hex and base.HEX or base.DEC, p.names end,
  bits = function(p)
    -- A number that differs from its bits is shown without them.
    if p.plus then return "uint8", base.DEC end
    if FLAGS[p[4]] and not p.names then return "bool", 8, nil, p[4] end
    return "uint8", base.DEC, p.names, p[4]
  end,
  scaled = function() return "float" end,
  float = function() return "float" end,
  flow = function() return "string" end,
  bytes = function() return "bytes" end,
  text = function() return "string" end,
  group = function() return "none" end,
}

local function define(name, label, kind, ...)
  fields[name] = fields[name] or ProtoField[kind]("ncmesh." .. name, label, ...)
end

local function define_all(parts)
  for _, p in ipairs(parts) do
    local op = p[1]
    if KINDS[op] then define(p[2], p[3], KINDS[op](p)) end
    if op == "route" then
      for i = 4, 6 do define(p[i], title(p[i]), "uint16") end
    elseif op == "check" and p[2] == "cut" then
      define(p[6], title(p[6]), "uint32")
    elseif op == "byte" then
      define_all({ table.unpack(p, 2) })
    elseif type(p[#p]) == "table" then
      define_all(p[#p])
    end
  end
end

for _, layouts in pairs(LAYOUTS) do
  for _, layout in pairs(layouts) do define_all(layout.parts) end
end
ncmesh.fields = fields

local undecoded, group = expert.group.UNDECODED, expert.group.MALFORMED
local malformed = ProtoExpert.new("ncmesh.malformed", "Malformed", group, expert.severity.ERROR)
local foreign_version = ProtoExpert.new(
  "ncmesh.foreign_version", "Another version", undecoded, expert.severity.WARN)
local unknown = ProtoExpert.new(
  "ncmesh.unknown", "Unknown service or kind", undecoded, expert.severity.WARN)
local cut = ProtoExpert.new("ncmesh.cut", "Captured in part", undecoded, expert.severity.NOTE)
ncmesh.experts = { malformed, foreign_version, unknown, cut }

-- ---- text

-- Well-formed sequences of UTF-8 (Unicode 15, table 3-7).
local CONTINUATION = "[\128-\191]"
local UTF_8 = {
  "^[\0-\127]+",
  "^[\194-\223]" .. CONTINUATION,
  "^\224[\160-\191]" .. CONTINUATION,
  "^[\225-\236\238\239]" .. CONTINUATION .. CONTINUATION,
  "^\237[\128-\159]" .. CONTINUATION,
  "^\240[\144-\191]" .. CONTINUATION .. CONTINUATION,
  "^[\241-\243]" .. CONTINUATION .. CONTINUATION .. CONTINUATION,
  "^\244[\128-\143]" .. CONTINUATION .. CONTINUATION,
}

local function is_utf8(text)
  local at = 1
  while at <= #text do
    local last
    for _, sequence in ipairs(UTF_8) do
      last = last or select(2, text:find(sequence, at))
    end
    if not last then return false end
    at = last + 1
  end
  return true
end

local CHARSETS = {
  any = function() return true end,
  utf8 = is_utf8,
  name = function(text) return #text >= 1 and #text <= 63 and not text:find("[^%w._-]") end,
}

-- ---- a body being read

-- Reads a body from the front, shows what it reads, and keeps it by name. After the first failure
-- it reads nothing more.
local Cursor = {}
Cursor.__index = Cursor

function Cursor.new(tvb, first, last, tree)
  local cursor = { tvb = tvb, at = first, last = last, tree = tree, values = {}, count = 0 }
  cursor.sender = tvb(1, 2):uint()
  return setmetatable(cursor, Cursor)
end

function Cursor:left() return self.last - self.at end

function Cursor:fail(...)
  if self.failed then return end
  self.failed = true
  self.tree:add_proto_expert_info(malformed, string.format(...))
end

function Cursor:take(n)
  if self.failed or n > self:left() then return self:fail("The body ends before its fields do") end
  self.at = self.at + n
  return self.tvb(self.at - n, n)
end

-- Keeps a value: the number that other parts refer to, and how texts show it. `key` tells bytes
-- of one length apart.
function Cursor:keep(name, number, text, key)
  self.count = self.count + 1
  local values = self.values[name] or {}
  self.values[name] = values
  values[#values + 1] = { number = number, text = text, key = key or number, place = self.count }
end

-- The number that was read last under a name.
function Cursor:latest(name)
  local values = self.values[name]
  return values and values[#values].number
end

-- A text with names replaced by values that were read behind `place`.
function Cursor:render(text, place)
  return (text:gsub("{([%w_.]+)([#+?]?)(%d*)}", function(name, how, nth)
    local found, values = {}, self.values[name] or {}
    for i = #values, 1, -1 do
      if values[i].place <= place then break end
      table.insert(found, 1, values[i].text)
    end
    if how == "?" then return tostring(#found) end
    if how == "+" then return table.concat(found, " + ") end
    return found[tonumber(nth) or 1] or "?"
  end))
end

-- Judges a number by its bounds and names, and keeps it.
function Cursor:accept(p, number)
  local is_allowed = number >= (p.min or 0) and number <= (p.max or number)
  if not is_allowed or p.names and not p.names[number] then
    self:fail("%s: %.0f is not allowed", p[3], number)
  end
  local text = p.names and p.names[number] or string.format(p.hex and "%08x" or "%.0f", number)
  self:keep(p[2], number, text)
end

-- ---- parts

local show = {}

local function show_all(c, parts)
  for _, p in ipairs(parts) do
    if c.failed then return end
    show[p[1]](c, p)
  end
end

function show.number(c, p)
  local range = c:take(p[4])
  if not range then return end
  c.tree:add(fields[p[2]], range)
  if p[4] < 8 then return c:accept(p, range:uint()) end
  c:accept(p, range(0, 4):uint() * 2 ^ 32 + range(4, 4):uint())
end

function show.byte(c, p)
  local range = c:take(1)
  if not range then return end
  local rest = range:uint()
  for i = 2, #p do
    local bits, mask, lowest = p[i], p[i][4], 1
    while mask % (2 * lowest) == 0 do lowest = 2 * lowest end
    local number = math.floor(range:uint() / lowest) % math.floor(mask / lowest + 1)
    rest = rest - number * lowest
    if bits.plus then
      number = number + bits.plus
      c.tree:add(fields[bits[2]], range, number)
    else
      c.tree:add(fields[bits[2]], range)
    end
    c:accept(bits, number)
  end
  if rest ~= 0 then c:fail("Unknown flags") end
end

function show.scaled(c, p)
  local range = c:take(p[4])
  if not range then return end
  local value = range:uint() / p[5]
  c.tree:add(fields[p[2]], range, value)
  c:keep(p[2], value, string.format("%.2f", value))
end

function show.float(c, p)
  local range = c:take(4)
  if not range then return end
  c.tree:add(fields[p[2]], range)
  if range:bitfield(1, 8) == 255 then c:fail("%s is not finite", p[3]) end
  c:keep(p[2], range:float(), string.format("%.2f", range:float()))
end

function show.flow(c, p)
  local range = c:take(6)
  if not range then return end
  local text = string.format("%d-%08x", range(0, 2):uint(), range(2, 4):uint())
  local tree = c.tree:add(fields[p[2]], range, text)
  tree:add(fields["flow.source"], range(0, 2))
  tree:add(fields["flow.serial"], range(2, 4))
  c:keep(p[2], 0, text, text)
end

function show.bytes(c, p)
  local n = p.fixed or p.rest and c:left() or p.field and c:latest(p.field)
  if p.square then n = math.ceil(c:latest(p.square) ^ 2 / 8) end
  if p.prefixed then
    local length = c:take(1)
    if not length then return end
    n = length:uint()
  end
  if n < (p.min or 0) or n > (p.max or n) then return c:fail("%s: %d bytes", p[3], n) end
  local range = n > 0 and c:take(n)
  if c.failed then return end
  if range then c.tree:add(fields[p[2]], range) end
  c:keep(p[2], n, string.format("%d bytes", n), range and range:raw() or "")
end

function show.text(c, p)
  local length = c:take(1)
  local n = length and length:uint() or 0
  local range = n > 0 and c:take(n)
  if c.failed then return end
  local text = range and range:raw() or ""
  if range then c.tree:add_packet_field(fields[p[2]], range, ENC_UTF_8) end
  if not CHARSETS[p[4]](text) then c:fail("%s: no such text is allowed", p[3]) end
  c:keep(p[2], n, is_utf8(text) and text or "?", text)
end

function show.group(c, p)
  local first, tree, place = c.at, c.tree, c.count
  local branch = tree:add(fields[p[2]], c.tvb(first, 0))
  c.tree = branch
  show_all(c, p[5])
  c.tree = tree
  branch:set_len(c.at - first)
  if c.failed then return end
  local text = c:render(p[4], place)
  branch:set_text(text)
  c:keep(p[2], 0, text)
end

show["repeat"] = function(c, p)
  local times, done = p[2], 0
  if type(times) == "string" then
    for _ = 1, c:latest(times) do
      if c.failed then return end
      show_all(c, p[3])
    end
    return
  end
  while c:left() > 0 and not c.failed do
    show_all(c, p[3])
    done = done + 1
  end
  if done < times[1] or times[2] and done > times[2] then c:fail("%d entries", done) end
end

function show.when(c, p)
  if c:latest(p[2]) == p[3] then show_all(c, p[4]) end
end

-- Shows a route. `p[7]` names the nodes on either side of the sender where two packets cross.
function show.route(c, p)
  local hop, known = c:latest(p[2]), {}
  if p[7] then
    local ends, is_second = c.values[p[7]], c.values[p[4]] ~= nil
    known[hop - 1] = ends[is_second and 1 or 2].number
    known[hop + 1] = ends[is_second and 2 or 1].number
  end
  if p[7] or hop > 0 then known[hop] = c.sender end
  local seen, last = {}, nil
  for place = 0, c:latest(p[3]) do
    local name, range = p[place == 0 and 4 or 5], nil
    if known[place] then
      c.tree:add(fields[name], known[place]):set_generated()
    else
      range = c:take(2)
      if not range then return end
      c.tree:add(fields[name], range)
    end
    last = known[place] or range:uint()
    if seen[last] then return c:fail("A route visits no node twice") end
    seen[last] = true
    c:keep(name, last, string.format("%d", last))
  end
  c.tree:add(fields[p[6]], last):set_generated()
  c:keep(p[6], last, string.format("%d", last))
end

-- ---- checks: each says what is amiss, if anything is

local check = {}

function check.at_most(c, a, b)
  return c:latest(a) > c:latest(b) and "%s is more than %s"
end

function check.at_most_greatest(c, a, b)
  for _, value in ipairs(c.values[b]) do
    if c:latest(a) <= value.number then return nil end
  end
  return "%s is more than every %s"
end

function check.below(c, a, b) return c:latest(a) >= c:latest(b) and "%s is not below %s" end

function check.differ(c, a, b) return c:latest(a) == c:latest(b) and "%s is %s" end

function check.implies(c, a, b)
  return c:latest(a) ~= 0 and c:latest(b) == 0 and "%s without %s"
end

function check.excludes(c, a, b)
  return c:latest(a) ~= 0 and c:latest(b) ~= 0 and "%s with %s"
end

function check.is(c, name, value) return c:latest(name) ~= value and "%s is not %d" end

function check.distinct(c, ...)
  local seen = {}
  for i = 1, #(c.values[...] or {}) do
    local keys = {}
    for _, name in ipairs({ ... }) do keys[#keys + 1] = tostring(c.values[name][i].key) end
    local item = table.concat(keys, " ")
    if seen[item] then return "%s comes twice" end
    seen[item] = true
  end
end

-- Into how many generations a file is cut.
function check.cut(c, size, generation, symbol, generations)
  local bytes, capacity = c:latest(size), c:latest(generation) * c:latest(symbol)
  for depth = 0, bytes <= 2 ^ 44 and 24 or -1 do
    local room = capacity - 32 * depth
    if room <= 0 then break end
    local whole = (bytes - bytes % room) / room
    local count = bytes % room > 0 and whole + 1 or whole
    if count <= 2 ^ depth then
      c.tree:add(fields[generations], math.floor(count)):set_generated()
      return nil
    end
  end
  return "%s: no file can be cut so"
end

local function bit(number, place) return math.floor(number / 2 ^ place) % 2 == 1 end

-- Whether next hops, a bit for each node, lead in no circle and from the second node nowhere.
function check.acyclic(c, name, most)
  local left, next_hops = {}, c.values[name]
  for i = 1, #next_hops do
    local number, hops = next_hops[i].number, 0
    for place = 0, 15 do hops = hops + (bit(number, place) and 1 or 0) end
    if number >= 2 ^ #next_hops or bit(number, i - 1) or hops > most then
      return "%s: no such next hops"
    end
    left[i] = true
  end
  if next_hops[2].number ~= 0 then return "%s: the destination has none" end
  -- Nodes without next hops go, then those that led to them only, until none is left.
  for _ = 1, #next_hops do
    local found
    for i = 1, #next_hops do
      local ends = left[i] and not found
      for j = 1, #next_hops do
        ends = ends and not (left[j] and bit(next_hops[i].number, j - 1))
      end
      if ends then found = i end
    end
    if not found then return "%s lead in a circle" end
    left[found] = false
  end
end

function show.check(c, p)
  local what = check[p[2]](c, table.unpack(p, 3))
  if what then c:fail(what, table.unpack(p, 3)) end
end

-- ---- frames

-- Shows the body of a frame under the null cipher, from HEADER_LEN to `last`.
local function show_body(tvb, last, pinfo, tree)
  local id, kind = tvb(HEADER_LEN, 1):uint(), tvb(HEADER_LEN + 1, 1):uint()
  tree:add(fields.service, tvb(HEADER_LEN, 1))
  tree:add(fields.background, tvb(HEADER_LEN + 1, 1))
  tree:add(fields.signed, tvb(HEADER_LEN + 1, 1))
  tree:add(fields.kind, tvb(HEADER_LEN + 1, 1))
  kind = kind % BACKGROUND
  if kind >= SIGNED then
    kind = kind % SIGNED
    last = last - SIGNATURE_LEN
    if last < HEADER_LEN + 2 then
      tree:add_proto_expert_info(malformed, "Too short for a signature")
      pinfo.cols.info = "malformed"
      return
    end
    tree:add(fields.signature, tvb(last, SIGNATURE_LEN))
  end
  local service = SERVICES[id]
  local layout = service and LAYOUTS[service[2]][kind]
  if not layout then
    tree:add_proto_expert_info(unknown)
    pinfo.cols.info = string.format("service %d, kind %d", id, kind)
    return
  end
  local c, name = Cursor.new(tvb, HEADER_LEN + 2, last, tree), layout.name
  show_all(c, layout.parts)
  if c:left() > 0 then c:fail("The body does not end behind its fields") end
  local variant = layout.variant
  if variant and c:latest(variant[1]) == variant[2] then name = variant[3] end
  tree:add(fields.type, tvb(HEADER_LEN, 2), name):set_generated()
  local text = c.failed and "malformed" or c:render(layout.info, 0)
  pinfo.cols.info = string.format("%s %s %s", service[1], name, text)
end

local function show_sealed(tvb, last, pinfo, tree)
  tree:add(fields.sealed, tvb(HEADER_LEN, last - HEADER_LEN))
  pinfo.cols.info = string.format("encrypted, %d bytes", tvb:len())
end

local function show_header(tvb, tree)
  tree:add(fields.sender, tvb(1, 2))
  tree:add(fields.salt, tvb(3, 16))
  tree:add(fields.counter, tvb(19, 4))
  tree:append_text(string.format(", sender %d", tvb(1, 2):uint()))
end

function ncmesh.dissector(tvb, pinfo, root)
  local length = tvb:len()
  local told = length > 0 and tvb(0, 1):uint() or 0
  if told >= SHORTEST and told < SHORTEST_PAYLOAD and told < length then
    ncmesh.dissector(tvb(1, told):tvb(), pinfo, root)
    return length
  end
  if length == 0 or tvb(0, 1):bitfield(0, 4) ~= MARK then return 0 end
  pinfo.cols.protocol = "ncmesh"
  local tree = root:add(ncmesh, tvb())
  tree:add(fields.mark, tvb(0, 1))
  tree:add(fields.version, tvb(0, 1))
  if tvb(0, 1):bitfield(4, 4) ~= VERSION then
    tree:add_proto_expert_info(foreign_version)
    pinfo.cols.info = "another version"
    return length
  end
  if length >= HEADER_LEN then show_header(tvb, tree) end
  if tvb:reported_len() > length then
    -- Without the tag nobody knows whether the body is encrypted.
    tree:add_proto_expert_info(cut)
    pinfo.cols.info = "captured in part"
  elseif length < SHORTEST then
    tree:add_proto_expert_info(malformed, "Shorter than the shortest frame")
    pinfo.cols.info = "malformed"
  else
    local tag = tvb(length - TAG_LEN, TAG_LEN)
    local is_null = tag:bytes():tohex() == string.rep("0", 2 * TAG_LEN)
    local show_it = is_null and show_body or show_sealed
    show_it(tvb, length - TAG_LEN, pinfo, tree)
    tree:add(fields.tag, tag)
  end
  return length
end

DissectorTable.get("ethertype"):add(ETHERTYPE, ncmesh)
DissectorTable.get("udp.port"):add(UDP_PORT, ncmesh)
