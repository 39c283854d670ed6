-- Wireshark dissector for ncmesh frames, version 1 (docs/reference/wire-format.md). How to load
-- it: docs/guide/traces.md.
--
-- It takes Ethertype 0x88B5, which `ncmesh simulate --pcap` writes, and UDP port 7117, which
-- daemons use. It shows the header of sealed frames, and all of frames under the null cipher
-- (`--unsealed`), which have a tag of zeros. Runs under Lua 5.2 to 5.4, so without bit operators.

local ETHERTYPE = 0x88B5
local UDP_PORT = 7117
local MARK = 0xC
local VERSION = 1
local HEADER_LEN = 15
local TAG_LEN = 16
local SHORTEST = HEADER_LEN + 2 + TAG_LEN

local ncmesh = Proto("ncmesh", "ncmesh")

local PHASES = { [0] = "open", [1] = "ended", [2] = "withdrawn" }

local STATES = {
  [0] = "invited",
  [1] = "active",
  [2] = "complete",
  [3] = "lost",
  [16] = "refused: name not allowed",
  [17] = "refused: no space",
  [18] = "refused: inbox not writable",
  [19] = "refused: cancelled",
  [20] = "refused: does not match its hash",
  [21] = "refused: busy",
  [22] = "refused: no inbox",
}

-- Every service by its id, with the kind of its frames. Ids and names of the engines are those of
-- crates/engines/src/lib.rs.
local SERVICES = {
  [0] = { name = "link", is = "link" },
  [1] = { name = "route", is = "route" },
  [16] = { name = "pacifier", is = "file" },
  [17] = { name = "more", is = "file" },
  [18] = { name = "etx_unicast", is = "file" },
  [19] = { name = "tree_flood", is = "file" },
  [20] = { name = "forward", is = "forward" },
  [21] = { name = "xor", is = "xor" },
  [22] = { name = "mc2", is = "mc2" },
  [23] = { name = "core_nc", is = "core" },
  [24] = { name = "multirate", is = "stream" },
  [25] = { name = "cope", is = "core" },
}
local SERVICE_NAMES = {}
for id, service in pairs(SERVICES) do SERVICE_NAMES[id] = service.name end

local WISHES = { [0] = "stop", [1] = "more", [2] = "next generation" }

local f = {
  mark = ProtoField.uint8("ncmesh.mark", "Mark", base.HEX, nil, 0xF0),
  version = ProtoField.uint8("ncmesh.version", "Version", base.DEC, nil, 0x0F),
  sender = ProtoField.uint16("ncmesh.sender", "Sender"),
  epoch = ProtoField.uint64("ncmesh.epoch", "Epoch"),
  counter = ProtoField.uint32("ncmesh.counter", "Counter"),
  sealed = ProtoField.bytes("ncmesh.sealed", "Encrypted body"),
  tag = ProtoField.bytes("ncmesh.tag", "Tag"),
  service = ProtoField.uint8("ncmesh.service", "Service", base.DEC, SERVICE_NAMES),
  kind = ProtoField.uint8("ncmesh.kind", "Kind"),
  type = ProtoField.string("ncmesh.type", "Type"),

  probe_sequence = ProtoField.uint32("ncmesh.probe.sequence", "Sequence"),
  probe_quick = ProtoField.uint16("ncmesh.probe.quick", "Quick probes"),
  probe_quick_period = ProtoField.uint16("ncmesh.probe.quick_period", "Quick period, ms"),
  probe_period = ProtoField.uint16("ncmesh.probe.period", "Period, ms"),
  padding = ProtoField.bytes("ncmesh.padding", "Padding"),

  state = ProtoField.none("ncmesh.link_state", "Link state"),
  state_origin = ProtoField.uint16("ncmesh.link_state.origin", "Origin"),
  state_name = ProtoField.string("ncmesh.link_state.name", "Name"),
  state_count = ProtoField.uint16("ncmesh.link_state.count", "Neighbours"),
  neighbour = ProtoField.none("ncmesh.neighbour", "Neighbour"),
  neighbour_node = ProtoField.uint16("ncmesh.neighbour.node", "Node"),
  neighbour_delivery = ProtoField.float("ncmesh.neighbour.delivery", "Delivery"),

  version_epoch = ProtoField.uint64("ncmesh.originator_epoch", "Epoch of the originator"),
  version_number = ProtoField.uint32("ncmesh.number", "Number"),
  flow = ProtoField.string("ncmesh.flow", "Flow"),
  flow_source = ProtoField.uint16("ncmesh.flow.source", "Source"),
  flow_serial = ProtoField.uint32("ncmesh.flow.serial", "Serial", base.HEX),

  phase = ProtoField.uint8("ncmesh.announcement.phase", "Phase", base.DEC, PHASES, 0x7F),
  open = ProtoField.bool("ncmesh.announcement.may_join", "Others may join", 8, nil, 0x80),
  size = ProtoField.uint64("ncmesh.announcement.size", "Size, bytes"),
  generation = ProtoField.uint8("ncmesh.announcement.generation", "Packets of a full batch"),
  symbol_size = ProtoField.uint16("ncmesh.announcement.symbol_size", "Symbol size, bytes"),
  batches = ProtoField.uint32("ncmesh.announcement.batches", "Batches"),
  root = ProtoField.bytes("ncmesh.announcement.root", "Root of the hash tree"),
  hash = ProtoField.bytes("ncmesh.announcement.hash", "BLAKE3 of the file"),
  name = ProtoField.string("ncmesh.announcement.name", "Name"),
  receiver_count = ProtoField.uint16("ncmesh.announcement.receivers", "Receivers"),
  receiver = ProtoField.none("ncmesh.receiver", "Receiver"),
  receiver_node = ProtoField.uint16("ncmesh.receiver.node", "Node"),
  receiver_state = ProtoField.uint8("ncmesh.receiver.state", "State", base.DEC, STATES),

  incarnation = ProtoField.uint16("ncmesh.incarnation", "Incarnation", base.HEX),
  visit = ProtoField.uint32("ncmesh.visit", "Visit"),
  batch = ProtoField.uint32("ncmesh.batch", "Batch"),
  packets = ProtoField.uint8("ncmesh.packets", "Packets of the batch"),
  systematic = ProtoField.bool("ncmesh.systematic", "Systematic", 8, nil, 0x01),
  has_piggyback = ProtoField.bool("ncmesh.has_piggyback", "Piggyback", 8, nil, 0x02),
  has_belts = ProtoField.bool("ncmesh.has_belts", "Belts", 8, nil, 0x04),
  forwarder_count = ProtoField.uint8("ncmesh.forwarders", "Forwarders"),
  forwarder = ProtoField.none("ncmesh.forwarder", "Forwarder"),
  forwarder_node = ProtoField.uint16("ncmesh.forwarder.node", "Node"),
  forwarder_credit = ProtoField.float("ncmesh.forwarder.credit", "TX_credit"),
  is_tree = ProtoField.bool("ncmesh.is_tree", "Tree", 8, nil, 0x08),
  has_poll = ProtoField.bool("ncmesh.has_poll", "Poll", 8, nil, 0x10),
  parent = ProtoField.uint16("ncmesh.parent", "Parent"),
  poll = ProtoField.uint32("ncmesh.poll", "Poll"),
  held = ProtoField.bytes("ncmesh.held", "Packets held"),
  revision = ProtoField.uint8("ncmesh.revision", "Revision of the plan"),
  upstream = ProtoField.bytes("ncmesh.upstream", "Who is upstream of whom, a row of bits each"),
  piggyback_receiver = ProtoField.uint16("ncmesh.piggyback.receiver", "Acknowledgment of receiver"),
  piggyback_serial =
    ProtoField.uint32("ncmesh.piggyback.serial", "Acknowledgment serial", base.HEX),
  index = ProtoField.uint8("ncmesh.index", "Packet, as it is"),
  coefficients = ProtoField.bytes("ncmesh.coefficients", "Coefficients, GF(2^8)"),
  payload = ProtoField.bytes("ncmesh.payload", "Symbol"),

  xor_packet = ProtoField.none("ncmesh.xor.packet", "Packet"),
  xor_source = ProtoField.uint16("ncmesh.xor.source", "Source"),
  xor_number = ProtoField.uint32("ncmesh.xor.number", "Number"),
  xor_length = ProtoField.uint16("ncmesh.xor.length", "Length of the shorter packet"),
  xor_check = ProtoField.uint32("ncmesh.xor.check", "Check", base.HEX),
  xor_order = ProtoField.uint16("ncmesh.xor.order", "Order"),
  xor_at = ProtoField.uint8("ncmesh.xor.at", "At hop", base.DEC, nil, 0xF0),
  xor_hops = ProtoField.uint8("ncmesh.xor.hops", "Hops"),
  xor_hop = ProtoField.uint16("ncmesh.xor.hop", "Hop"),
  xor_more = ProtoField.bool("ncmesh.xor.more", "More for the next hop", 8, nil, 0x80),
  xor_other_more = ProtoField.bool(
    "ncmesh.xor.other_more", "More for the next hop of the shorter packet", 8, nil, 0x40),
  xor_next = ProtoField.uint16("ncmesh.xor.next", "Next hop"),
  asked = ProtoField.uint16("ncmesh.request.asked", "Asked"),
  missed = ProtoField.uint16("ncmesh.request.missed", "Missed"),
  coded = ProtoField.uint32("ncmesh.report.coded", "Coded"),
  decoded = ProtoField.uint32("ncmesh.report.decoded", "Decoded"),

  layer = ProtoField.uint8("ncmesh.stream.layer", "Layer"),
  stream_seq = ProtoField.uint32("ncmesh.stream.sequence", "Sequence"),
  stream_packet = ProtoField.bytes("ncmesh.stream.packet", "Packet"),
  stream_version = ProtoField.uint32("ncmesh.stream.version", "Version"),
  stream_layers = ProtoField.uint8("ncmesh.stream.layers", "Layers"),
  stream_group = ProtoField.string("ncmesh.stream.group", "Group"),
  stream_layer_name = ProtoField.string("ncmesh.stream.layer.name", "Layer"),
  stream_sent = ProtoField.uint32("ncmesh.stream.sent", "Packets sent"),
  membership = ProtoField.none("ncmesh.membership", "Membership"),
  members = ProtoField.uint16("ncmesh.membership.receivers", "Receivers"),
  backlog = ProtoField.float("ncmesh.membership.backlog", "Backlog, packets"),
  pressure = ProtoField.float("ncmesh.membership.pressure", "Virtual pressure, packets"),

  core_serial = ProtoField.uint16("ncmesh.core.serial", "Serial"),
  core_number = ProtoField.uint16("ncmesh.core.number", "Number"),
  core_again = ProtoField.uint8("ncmesh.core.again", "Asked before in vain"),
  core_parts = ProtoField.uint8("ncmesh.core.parts", "Flows"),
  core_part = ProtoField.none("ncmesh.core.part", "Flow"),
  core_source = ProtoField.uint16("ncmesh.core.source", "Source"),
  core_destination = ProtoField.uint16("ncmesh.core.destination", "Destination"),
  core_incarnation = ProtoField.uint32("ncmesh.core.incarnation", "Incarnation", base.HEX),
  core_generation = ProtoField.uint32("ncmesh.core.generation", "Generation"),
  core_behind = ProtoField.uint8("ncmesh.core.behind", "Generations behind it"),
  core_room = ProtoField.uint8("ncmesh.core.room", "Room, packets"),
  core_count = ProtoField.uint8("ncmesh.core.count", "Packets by now"),
  core_closed = ProtoField.bool("ncmesh.core.closed", "There will be no more", 8, nil, 0x01),
  core_symbol = ProtoField.uint16("ncmesh.core.symbol", "Symbol size, bytes"),
  core_wish = ProtoField.uint8("ncmesh.core.wish", "Wish", base.DEC, WISHES),
  core_alone = ProtoField.uint8("ncmesh.core.alone", "Packets lacking, alone"),
  core_combined = ProtoField.uint8("ncmesh.core.combined", "Packets lacking, combined"),
  core_progress = ProtoField.uint16("ncmesh.core.progress", "Progress"),
  core_wanted = ProtoField.bytes("ncmesh.core.wanted", "Numbers of packets lacking"),
  core_received = ProtoField.uint16("ncmesh.core.received", "Data frames heard"),
  core_sent = ProtoField.uint16("ncmesh.core.sent", "Of so many"),

  start = ProtoField.uint32("ncmesh.mc2.start", "Incarnation", base.HEX),
  path_count = ProtoField.uint8("ncmesh.mc2.nodes", "Nodes of the flow"),
  path_node = ProtoField.none("ncmesh.mc2.path", "Node"),
  path_id = ProtoField.uint16("ncmesh.mc2.node", "Node"),
  path_next = ProtoField.uint16("ncmesh.mc2.next_hops", "Next hops, a bit each", base.HEX),
  path_revision = ProtoField.uint8("ncmesh.mc2.revision", "Revision of the paths"),
  frame_serial = ProtoField.uint16("ncmesh.mc2.serial", "Serial"),
  asks = ProtoField.bool("ncmesh.mc2.asks", "Asks who heard it", 8, nil, 0x01),
  waits = ProtoField.bool("ncmesh.mc2.waits", "Waits for that", 8, nil, 0x02),
  credits = ProtoField.uint16("ncmesh.mc2.credits", "Credits held"),
  done = ProtoField.uint32("ncmesh.mc2.done", "Done with generations before"),
  heard_count = ProtoField.uint8("ncmesh.mc2.heard.nodes", "Nodes heard"),
  heard = ProtoField.none("ncmesh.mc2.heard", "Heard"),
  heard_node = ProtoField.uint16("ncmesh.mc2.heard.node", "Node"),
  heard_latest = ProtoField.uint16("ncmesh.mc2.heard.latest", "Latest frame"),
  heard_before = ProtoField.uint32("ncmesh.mc2.heard.before", "Of those before it", base.HEX),
  told_generations = ProtoField.uint8("ncmesh.mc2.told.generations", "Generations told of"),
  told_hops = ProtoField.uint8("ncmesh.mc2.told.hops", "Next hops told"),
  told = ProtoField.none("ncmesh.mc2.told", "Credits told"),
  told_generation = ProtoField.uint32("ncmesh.mc2.told.generation", "Generation"),
  told_credits = ProtoField.uint16("ncmesh.mc2.told.credits", "Credits told to a next hop"),
  code_generation = ProtoField.uint32("ncmesh.mc2.generation", "Generation"),
  room = ProtoField.uint8("ncmesh.mc2.room", "Room for packets"),
  size_now = ProtoField.uint8("ncmesh.mc2.size", "Packets, once settled"),
  size_before = ProtoField.uint8("ncmesh.mc2.size_before", "Packets of the generation before"),
  symbol = ProtoField.uint16("ncmesh.mc2.symbol", "Length of a combination"),
  request_serial = ProtoField.uint8("ncmesh.mc2.request.serial", "Request for this generation"),
  lacking = ProtoField.uint8("ncmesh.mc2.request.missing", "Packets missing"),

  next_hop = ProtoField.uint16("ncmesh.next_hop", "Next hop"),
  first_missing = ProtoField.uint32("ncmesh.first_missing", "First missing batch"),
  bits = ProtoField.bytes("ncmesh.bits", "Complete batches behind it"),

  packet_source = ProtoField.uint16("ncmesh.packet.source", "Source"),
  packet_destination = ProtoField.uint16("ncmesh.packet.destination", "Destination"),
  packet_hops = ProtoField.uint8("ncmesh.packet.hops", "Hops left"),
  packet_bytes = ProtoField.bytes("ncmesh.packet.bytes", "Packet"),
}
ncmesh.fields = f

local e = {
  malformed = ProtoExpert.new(
    "ncmesh.malformed", "Malformed", expert.group.MALFORMED, expert.severity.ERROR),
  foreign_version = ProtoExpert.new(
    "ncmesh.foreign_version", "Another version", expert.group.UNDECODED, expert.severity.WARN),
  unknown = ProtoExpert.new(
    "ncmesh.unknown", "Unknown service or kind", expert.group.UNDECODED, expert.severity.WARN),
  cut = ProtoExpert.new(
    "ncmesh.cut", "Captured in part", expert.group.UNDECODED, expert.severity.NOTE),
}
ncmesh.experts = e

-- Reads part of a frame from the front and shows what it reads. After an error it reads nothing
-- more: then all reads give nil, and numbers 0.
local Cursor = {}
Cursor.__index = Cursor

function Cursor.new(tvb, first, last, tree)
  return setmetatable({ tvb = tvb, at = first, last = last, tree = tree }, Cursor)
end

function Cursor:left()
  return self.failed and 0 or self.last - self.at
end

function Cursor:fail(what)
  if not self.failed then
    self.failed = true
    self.tree:add_proto_expert_info(e.malformed, what)
  end
end

function Cursor:take(n)
  if self.failed or n > self:left() then
    self:fail("The body ends before its fields do")
    return nil
  end
  self.at = self.at + n
  return self.tvb(self.at - n, n)
end

-- A field of n bytes, with a value where it is not the bytes themselves.
function Cursor:field(field, n, value)
  local range = self:take(n)
  if not range then return nil end
  if value then self.tree:add(field, range, value) else self.tree:add(field, range) end
  return range
end

-- A field of n bytes, at most 4, as a number.
function Cursor:number(field, n)
  local range = self:field(field, n)
  return range and range:uint() or 0
end

-- A number of n bytes that is shown divided by a unit.
function Cursor:fraction(field, n, unit)
  local range = self:take(n)
  if not range then return 0 end
  local value = range:uint() / unit
  self.tree:add(field, range, value)
  return value
end

-- Everything that is left; nothing is shown where that is nothing.
function Cursor:rest(field)
  local n = self:left()
  if n > 0 then self:field(field, n) end
  return n
end

-- Bytes behind their length, as text.
function Cursor:short_text(field)
  local length = self:take(1)
  local text = length and length:uint() > 0 and self:take(length:uint())
  if not text then return "" end
  self.tree:add_packet_field(field, text, ENC_UTF_8)
  return text:raw()
end

function Cursor:flow()
  local range = self:take(6)
  if not range then return "?" end
  local text = string.format("%d-%08x", range(0, 2):uint(), range(2, 4):uint())
  local tree = self.tree:add(f.flow, range, text)
  tree:add(f.flow_source, range(0, 2))
  tree:add(f.flow_serial, range(2, 4))
  return text
end

function Cursor:version()
  self:field(f.version_epoch, 8)
  self:field(f.version_number, 4)
end

function Cursor:receiver_state()
  local state = self:number(f.receiver_state, 1)
  if not STATES[state] then self:fail("No receiver has such a state") end
  return STATES[state]
end

-- Reads an item into a branch of its own: `read` gives the branch's text.
function Cursor:branch(field, read)
  local first, tree = self.at, self.tree
  local branch = tree:add(field, self.tvb(first, 0))
  self.tree = branch
  local text = read()
  self.tree = tree
  branch:set_len(self.at - first)
  if not self.failed then branch:set_text(text) end
end

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

-- How many batches a file is cut into; nil where it cannot be cut so.
local function batches(size, generation, symbol_size)
  if size > 2 ^ 44 then return nil end
  for depth = 0, 24 do
    local room = generation * symbol_size - 32 * depth
    if room <= 0 then return nil end
    local whole = (size - size % room) / room
    local count = size % room > 0 and whole + 1 or whole
    if count <= 2 ^ depth then return count end
  end
  return nil
end

-- Each of these shows a body and gives what stands in the info column behind service and type.

local function probe(c)
  local sequence = c:number(f.probe_sequence, 4)
  c:field(f.probe_quick, 2)
  c:field(f.probe_quick_period, 2)
  c:field(f.probe_period, 2)
  c:rest(f.padding)
  return string.format("sequence %d", sequence)
end

local function link_state(c)
  local origins = {}
  while c:left() > 0 do
    c:branch(f.state, function()
      local origin = c:number(f.state_origin, 2)
      c:version()
      local name = c:short_text(f.state_name)
      local count = c:number(f.state_count, 2)
      if c:left() < 3 * count then c:fail("The body ends before its neighbours do") end
      for _ = 1, math.min(count, c:left() / 3) do
        c:branch(f.neighbour, function()
          local node = c:number(f.neighbour_node, 2)
          return string.format("Neighbour %d: %.2f", node, c:fraction(f.neighbour_delivery, 1, 255))
        end)
      end
      table.insert(origins, string.format("%d", origin))
      return string.format("Link state of %d (%s)", origin, is_utf8(name) and name or "?")
    end)
  end
  return "of " .. table.concat(origins, ", ")
end

local function announcement(c)
  local flow = c:flow()
  c:version()
  local flags = c:take(1)
  local phase = flags and flags:bitfield(1, 7)
  if flags then
    c.tree:add(f.phase, flags)
    c.tree:add(f.open, flags)
    if not PHASES[phase] then c:fail("No transfer has such a phase") end
  end
  local size = c:field(f.size, 8)
  local generation, symbol_size = c:number(f.generation, 1), c:number(f.symbol_size, 2)
  if size and not c.failed then
    local count = batches(size(0, 4):uint() * 2 ^ 32 + size(4, 4):uint(), generation, symbol_size)
    if count then
      c.tree:add(f.batches, count):set_generated()
    else
      c:fail("No file can be cut so")
    end
  end
  c:field(f.root, 32)
  c:field(f.hash, 32)
  if not is_utf8(c:short_text(f.name)) then c:fail("The name is no UTF-8") end
  local count = c:number(f.receiver_count, 2)
  if c:left() ~= 3 * count then c:fail("The body does not end behind its receivers") end
  for _ = 1, c:left() / 3 do
    c:branch(f.receiver, function()
      local node = c:number(f.receiver_node, 2)
      return string.format("Receiver %d: %s", node, c:receiver_state())
    end)
  end
  return string.format("%s %s, %d receivers", flow, PHASES[phase] or "?", count)
end

local function routing(c, has_belts, is_tree)
  local listed = c:number(f.forwarder_count, 1)
  if c:left() < 4 * listed then c:fail("The body ends before its nodes do") end
  for _ = 1, math.min(listed, c:left() / 4) do
    c:branch(f.forwarder, function()
      local node = c:number(f.forwarder_node, 2)
      if is_tree then return string.format("Node %d below %d", node, c:number(f.parent, 2)) end
      local credit = c:fraction(f.forwarder_credit, 2, 256)
      return string.format("Forwarder %d: TX_credit %.2f", node, credit)
    end)
  end
  if has_belts or is_tree then c:field(f.revision, 1) end
  if has_belts and listed > 0 then c:field(f.upstream, math.ceil(listed * listed / 8)) end
end

local function data(c)
  local flow = c:flow()
  c:field(f.incarnation, 2)
  c:field(f.visit, 4)
  local batch = c:number(f.batch, 4)
  local packets = c:number(f.packets, 1)
  local flags = c:take(1)
  if flags then
    c.tree:add(f.systematic, flags)
    c.tree:add(f.has_piggyback, flags)
    c.tree:add(f.has_belts, flags)
    c.tree:add(f.is_tree, flags)
    c.tree:add(f.has_poll, flags)
    if packets == 0 then c:fail("A batch has at least one packet") end
    if flags:uint() > 31 then c:fail("Unknown flags") end
  end
  local function has(bit) return flags ~= nil and math.floor(flags:uint() / bit) % 2 == 1 end
  local misplaced = has(4) and has(8) or has(8) and not has(1) or has(16) and not has(8)
  if misplaced then c:fail("Flags that exclude each other") end
  routing(c, has(4), has(8))
  if has(16) then c:field(f.poll, 4) end
  if flags and flags:bitfield(6, 1) == 1 then
    c:field(f.piggyback_receiver, 2)
    c:field(f.piggyback_serial, 4)
  end
  local systematic = flags and flags:bitfield(7, 1) == 1
  if systematic then
    if c:number(f.index, 1) >= packets then c:fail("The batch has no such packet") end
  else
    c:field(f.coefficients, packets)
  end
  local symbol = c:rest(f.payload)
  if symbol == 0 or symbol > 65535 then c:fail("A packet carries 1 to 65,535 bytes") end
  return string.format("%s batch %d, %s", flow, batch, systematic and "systematic" or "coded")
end

local function report(c)
  local parent = c:number(f.parent, 2)
  local flow = c:flow()
  c:field(f.incarnation, 2)
  c:field(f.visit, 4)
  local batch = c:number(f.batch, 4)
  c:field(f.poll, 4)
  if c:rest(f.held) > 32 then c:fail("A batch has at most 255 packets") end
  return string.format("%s batch %d to parent %d", flow, batch, parent)
end

local function acknowledgment(c)
  local next_hop = c:number(f.next_hop, 2)
  local flow = c:flow()
  local receiver = c:number(f.receiver_node, 2)
  c:version()
  local state = c:receiver_state()
  local missing = c:number(f.first_missing, 4)
  c:rest(f.bits)
  local text = "%s of %d to %d: %s, complete below batch %d"
  return string.format(text, flow, receiver, next_hop, state or "?", missing)
end

local function forwarded(c)
  local next_hop = c:number(f.next_hop, 2)
  local source = c:number(f.packet_source, 2)
  local destination = c:number(f.packet_destination, 2)
  local hops = c:number(f.packet_hops, 1)
  if source == destination then c:fail("The packet goes where it comes from") end
  if hops == 0 then c:fail("The packet may go no further") end
  if c:rest(f.packet_bytes) == 0 then c:fail("There is no packet") end
  return string.format("%d to %d by %d", source, destination, next_hop)
end

-- A packet's header in a frame of xor. `known` gives the nodes of its route that the frame does not
-- list, by the place of its sender and their own.
local function xor_tag(c, known)
  local tag = { at = 0, name = "?", nodes = {} }
  local way = c:take(1)
  if not way then return tag end
  tag.at = way:bitfield(0, 4)
  local hops, seen = way:bitfield(4, 4) + 1, {}
  c.tree:add(f.xor_at, way)
  c.tree:add(f.xor_hops, way, hops)
  local number = c:number(f.xor_number, 4)
  c:field(f.xor_order, 2)
  if tag.at >= hops then c:fail("No packet travels so") end
  for place = 0, hops do
    local node = known(tag.at, place) or c:number(place == 0 and f.xor_source or f.xor_hop, 2)
    if seen[node] then c:fail("A route visits no node twice") end
    tag.nodes[place], seen[node] = node, true
  end
  tag.name = string.format("%d-%08x", tag.nodes[0], number)
  local destination, next_hop = tag.nodes[hops], tag.nodes[tag.at + 1] or 0
  tag.text = string.format("Packet %s to %d by %d", tag.name, destination, next_hop)
  return tag
end

-- The packet of a frame with one.
local function xor_one(c)
  local sender, tag = c.tvb(1, 2):uint(), nil
  c:branch(f.xor_packet, function()
    tag = xor_tag(c, function(at, place) return at > 0 and place == at and sender or nil end)
    return tag.text
  end)
  if c:rest(f.payload) == 0 then c:fail("There is no packet") end
  return tag.name
end

-- The two packets of a frame, the longer one first, which cross at its sender.
local function xor_two(c)
  local sender = c.tvb(1, 2):uint()
  local next, other_next = c:number(f.xor_next, 2), c:number(f.xor_next, 2)
  local shorter, names = c:number(f.xor_length, 2), {}
  for i, ends in ipairs({ { other_next, next }, { next, other_next } }) do
    local crossing = { [-1] = ends[1], [0] = sender, [1] = ends[2] }
    c:branch(f.xor_packet, function()
      local tag = xor_tag(c, function(at, place) return crossing[place - at] end)
      if tag.at == 0 then c:fail("Two packets cross at their sender") end
      c:field(f.xor_check, 4)
      names[i] = tag.name
      return tag.text
    end)
  end
  if names[1] == names[2] then c:fail("They are two packets") end
  local longer = c:rest(f.payload)
  if shorter == 0 or shorter > longer then c:fail("The payload is as long as the longer packet") end
  return names[1] .. " + " .. names[2]
end

local function xor_data(c)
  local first = c:take(1)
  local count = first and first:bitfield(2, 6)
  if first then
    c.tree:add(f.xor_more, first)
    if count == 2 then c.tree:add(f.xor_other_more, first) end
    c.tree:add(f.packets, first, count)
  end
  if count == 1 and first:bitfield(1, 1) == 0 then return xor_one(c) end
  if count == 2 then return xor_two(c), "coded" end
  c:fail("A frame has one packet or two")
  return ""
end

local function xor_report(c)
  local n = c:left()
  if n == 0 or n % 10 ~= 0 or n > 640 then c:fail("A report has 1 to 64 entries of 10 bytes") end
  for _ = 1, math.floor(c:left() / 10) do
    c:branch(f.neighbour, function()
      local node, coded = c:number(f.neighbour_node, 2), c:number(f.coded, 4)
      return string.format("Neighbour %d: %d of %d decoded", node, c:number(f.decoded, 4), coded)
    end)
  end
  return ""
end

local function xor_request(c)
  local asked, n = c:number(f.asked, 2), c:left()
  if n == 0 or n % 2 ~= 0 or n > 128 then c:fail("A request has 1 to 64 numbers") end
  for _ = 1, math.floor(c:left() / 2) do c:field(f.missed, 2) end
  return string.format("to %d, for %d packets", asked, math.floor(n / 2))
end

local function stream_data(c)
  local flow = c:flow()
  local next_hop = c:number(f.next_hop, 2)
  local layer = c:number(f.layer, 1)
  local seq = c:number(f.stream_seq, 4)
  if layer > 3 then c:fail("A stream has at most four layers") end
  if c:number(f.packet_hops, 1) == 0 then c:fail("The packet may go no further") end
  if c:rest(f.stream_packet) == 0 then c:fail("There is no packet") end
  return string.format("%s layer %d, packet %d to %d", flow, layer, seq, next_hop)
end

local function stream_report(c)
  local n = c:left()
  if n == 0 or n % 18 ~= 0 then c:fail("A report has entries of 18 bytes") end
  for _ = 1, math.floor(c:left() / 18) do
    c:branch(f.membership, function()
      local flow, parent = c:flow(), c:number(f.parent, 2)
      local receivers = c:number(f.members, 2)
      for _, field in ipairs({ f.backlog, f.pressure }) do
        local number = c:field(field, 4)
        if number and number:bitfield(1, 8) == 255 then c:fail("No backlog is infinite") end
      end
      return string.format("%s: %d receivers, parent %d", flow, receivers, parent)
    end)
  end
  return string.format("of %d streams", math.floor(n / 18))
end

local function is_plain_name(name)
  return #name >= 1 and #name <= 63 and not name:find("[^%w._-]")
end

local function stream_announcement(c)
  local flow = c:flow()
  c:field(f.stream_version, 4)
  local count = c:number(f.stream_layers, 1)
  if count > 4 then c:fail("A stream has at most four layers") end
  local group = c:short_text(f.stream_group)
  local plain, seen = is_plain_name(group), {}
  for _ = 1, math.min(count, 4) do
    local name = c:short_text(f.stream_layer_name)
    plain = plain and is_plain_name(name) and not seen[name]
    seen[name] = true
  end
  if not plain then
    c:fail("Names are letters, digits, '.', '_' and '-', of layers each another")
  end
  for _ = 1, math.min(count, 4) do c:field(f.stream_sent, 4) end
  if c:left() > 0 then c:fail("The body does not end behind its numbers") end
  return string.format("%s to group %s, %d layers", flow, plain and group or "?", count)
end

-- Which flow a frame of core_nc or cope belongs to, and the name for it.
local function core_start(c)
  local source, destination = c:number(f.core_source, 2), c:number(f.core_destination, 2)
  if source == destination then c:fail("A flow goes where it comes from") end
  c:field(f.core_incarnation, 4)
  return string.format("%d to %d", source, destination)
end

-- What data and counts say of a generation.
local function core_head(c)
  local head = { flow = core_start(c) }
  c:field(f.next_hop, 2)
  local generation, behind = c:number(f.core_generation, 4), c:number(f.core_behind, 1)
  head.room = c:number(f.core_room, 1)
  local count, flags = c:number(f.core_count, 1), c:take(1)
  if flags then c.tree:add(f.core_closed, flags) end
  head.symbol = c:number(f.core_symbol, 2)
  local sizes = head.room >= 1 and head.room <= 120 and count >= 1 and count <= head.room
    and head.symbol > 2
  if not sizes or behind > 7 or behind > generation or flags and flags:uint() > 1 then
    c:fail("There is no such generation")
  end
  head.text = string.format("%s generation %d", head.flow, generation)
  return head
end

local function core_part(c)
  local head
  c:branch(f.core_part, function()
    head = core_head(c)
    local width = c:take(1)
    if width and width:uint() >= 1 and width:uint() <= head.room then
      c:field(f.coefficients, width:uint())
    else
      c:fail("A vector has as many coefficients as the generation packets, or fewer")
    end
    return head.text
  end)
  return head
end

local function core_data(c)
  c:field(f.core_serial, 2)
  local parts = c:number(f.core_parts, 1)
  if parts ~= 1 and parts ~= 2 then c:fail("A frame has packets of one flow or of two") end
  local one = core_part(c)
  local symbol, text = one.symbol, one.text
  if parts == 2 then
    local other = core_part(c)
    if other.flow == one.flow then c:fail("No flow is combined with itself") end
    symbol, text = math.max(symbol, other.symbol), text .. " + " .. other.text
  end
  if c:rest(f.payload) > symbol then c:fail("The payload is longer than its symbol") end
  return text, parts == 2 and "coded"
end

local function core_count(c)
  c:field(f.core_serial, 2)
  c:field(f.core_number, 2)
  if c:number(f.core_again, 1) > 1 then c:fail("It was asked before or it was not") end
  local text = core_head(c).text
  if c:left() > 0 then c:fail("The body does not end behind its fields") end
  return text
end

local function core_feedback(c)
  local flow = core_start(c)
  c:field(f.next_hop, 2)
  local generation = c:number(f.core_generation, 4)
  c:field(f.core_number, 2)
  local wish = c:number(f.core_wish, 1)
  if not WISHES[wish] then c:fail("There is no such wish") end
  c:field(f.core_alone, 1)
  c:field(f.core_combined, 1)
  c:field(f.core_progress, 2)
  local wanted = c:take(1)
  if wanted and wanted:uint() > 120 then c:fail("No generation has so many packets") end
  if wanted and wanted:uint() > 0 then c:field(f.core_wanted, wanted:uint()) end
  local heard = c:take(1)
  if heard and heard:uint() > 4 then c:fail("It reports on 4 transmitters at most") end
  for _ = 1, math.min(heard and heard:uint() or 0, 4) do
    c:branch(f.neighbour, function()
      local node, received = c:number(f.neighbour_node, 2), c:number(f.core_received, 2)
      local sent = c:number(f.core_sent, 2)
      if received > sent then c:fail("More was heard than sent") end
      return string.format("Neighbour %d: heard %d of %d", node, received, sent)
    end)
  end
  if c:left() > 0 then c:fail("The body does not end behind its fields") end
  return string.format("%s generation %d: %s", flow, generation, WISHES[wish] or "?")
end

local function bit(number, place) return math.floor(number / 2 ^ place) % 2 == 1 end

-- Whether no packet can come back to where it was, by next hops as bits.
local function is_acyclic(next_hops)
  local left, n = {}, #next_hops
  for i = 1, n do left[i] = true end
  for _ = 1, n do
    local found
    for i = 1, n do
      local ends = left[i] and not found
      for j = 1, n do ends = ends and not (left[j] and bit(next_hops[i], j - 1)) end
      if ends then found = i end
    end
    if not found then return false end
    left[found] = false
  end
  return true
end

-- Nodes of a flow of mc2 with their next hops; gives its source and its destination.
local function mc2_paths(c)
  local count = c:number(f.path_count, 1)
  if count < 2 or count > 16 then c:fail("A flow has 2 to 16 nodes") end
  local nodes, next_hops, seen = {}, {}, {}
  for i = 1, c.failed and 0 or count do
    c:branch(f.path_node, function()
      nodes[i], next_hops[i] = c:number(f.path_id, 2), c:number(f.path_next, 2)
      local hops = 0
      for j = 0, 15 do
        if bit(next_hops[i], j) then
          hops = hops + 1
          if j >= count or j == i - 1 then c:fail("No such next hop") end
        end
      end
      if hops > 6 then c:fail("A node has at most 6 next hops") end
      if seen[nodes[i]] then c:fail("A node stands once among them") end
      seen[nodes[i]] = true
      return string.format("Node %d, %d next hops", nodes[i], hops)
    end)
  end
  if not c.failed then
    if next_hops[2] ~= 0 then c:fail("The destination hands nothing on") end
    if not is_acyclic(next_hops) then c:fail("Paths that lead in circles") end
  end
  return nodes[1] or 0, nodes[2] or 0
end

local function mc2_standing(c)
  c:field(f.credits, 2)
  c:field(f.done, 4)
  local count = c:number(f.heard_count, 1)
  if count > 4 then c:fail("A frame tells of at most 4 nodes") end
  for _ = 1, c.failed and 0 or count do
    c:branch(f.heard, function()
      local node, latest = c:number(f.heard_node, 2), c:number(f.heard_latest, 2)
      c:field(f.heard_before, 4)
      return string.format("Of %d, frame %d the latest", node, latest)
    end)
  end
end

local function mc2_told(c)
  local generations, hops = c:number(f.told_generations, 1), c:number(f.told_hops, 1)
  if generations > 3 or hops > 6 then c:fail("At most 3 generations and 6 next hops") end
  for _ = 1, c.failed and 0 or generations do
    c:branch(f.told, function()
      local generation = c:number(f.told_generation, 4)
      for _ = 1, hops do c:field(f.told_credits, 2) end
      return string.format("Credits of generation %d", generation)
    end)
  end
end

local function mc2_data(c)
  c:field(f.start, 4)
  local source, destination = mc2_paths(c)
  c:field(f.path_revision, 1)
  c:field(f.frame_serial, 2)
  local flags = c:take(1)
  if flags then
    c.tree:add(f.asks, flags)
    c.tree:add(f.waits, flags)
    if flags:uint() > 3 then c:fail("Unknown flags") end
  end
  mc2_standing(c)
  mc2_told(c)
  local generation, room = c:number(f.code_generation, 4), c:number(f.room, 1)
  local size, before = c:number(f.size_now, 1), c:number(f.size_before, 1)
  if room < 1 or room > 128 then c:fail("A generation has room for 1 to 128 packets") end
  if size > room or before > room then c:fail("A generation has no more packets than room") end
  local symbol = c:number(f.symbol, 2)
  c:field(f.coefficients, room)
  local length = c:rest(f.payload)
  if length < 3 or length > symbol then
    c:fail("A payload has 3 bytes or more, up to a combination's")
  end
  return string.format("%d to %d generation %d", source, destination, generation)
end

-- Which flow, of which start of its source.
local function mc2_start(c)
  local source, destination = c:number(f.packet_source, 2), c:number(f.packet_destination, 2)
  c:field(f.start, 4)
  if source == destination then c:fail("The flow goes where it comes from") end
  return string.format("%d to %d", source, destination)
end

local function mc2_report(c)
  local flow = mc2_start(c)
  mc2_standing(c)
  if c:left() > 0 then c:fail("The body does not end behind what was heard") end
  return flow
end

local function mc2_request(c)
  local flow = mc2_start(c)
  local next_hop, generation = c:number(f.next_hop, 2), c:number(f.code_generation, 4)
  c:field(f.request_serial, 1)
  local lacking = c:number(f.lacking, 1)
  if lacking == 0 then c:fail("Nothing is missing") end
  if c:left() > 0 then c:fail("The body does not end behind what is missing") end
  return string.format("%s by %d: %d packets of generation %d", flow, next_hop, lacking, generation)
end

-- The frames of each service, by kind. `show` returns the text for a frame, and its name if that
-- differs.
local FRAMES = {
  mc2 = {
    [1] = { name = "data", show = mc2_data },
    [2] = { name = "report", show = mc2_report },
    [3] = { name = "request", show = mc2_request },
  },
  stream = {
    [1] = { name = "data", show = stream_data },
    [2] = { name = "report", show = stream_report },
    [3] = { name = "announcement", show = stream_announcement },
  },
  xor = {
    [1] = { name = "data", show = xor_data },
    [2] = { name = "report", show = xor_report },
    [3] = { name = "request", show = xor_request },
  },
  core = {
    [1] = { name = "data", show = core_data },
    [2] = { name = "count", show = core_count },
    [3] = { name = "feedback", show = core_feedback },
  },
  link = { [0] = { name = "probe", show = probe } },
  route = { [0] = { name = "link_state", show = link_state } },
  file = {
    [0] = { name = "announcement", show = announcement },
    [1] = { name = "data", show = data },
    [2] = { name = "acknowledgment", show = acknowledgment },
    [3] = { name = "report", show = report },
  },
  forward = { [1] = { name = "data", show = forwarded } },
}

-- Shows the body of a frame under the null cipher, from HEADER_LEN to `last`.
local function show_body(tvb, last, pinfo, tree)
  local c = Cursor.new(tvb, HEADER_LEN, last, tree)
  local id = c:number(f.service, 1)
  local kind = c:number(f.kind, 1)
  local service = SERVICES[id]
  local frame = service and FRAMES[service.is][kind]
  if not frame then
    tree:add_proto_expert_info(e.unknown)
    pinfo.cols.info = string.format("service %d, kind %d", id, kind)
    return
  end
  local text, name = frame.show(c)
  name = name or frame.name
  tree:add(f.type, tvb(HEADER_LEN, 2), name):set_generated()
  if c.failed then text = "malformed" else c:rest(f.padding) end
  pinfo.cols.info = string.format("%s %s %s", service.name, name, text)
end

local function show_sealed(tvb, last, pinfo, tree)
  tree:add(f.sealed, tvb(HEADER_LEN, last - HEADER_LEN))
  pinfo.cols.info = string.format("encrypted, %d bytes", tvb:len())
end

local function show_header(tvb, tree)
  tree:add(f.sender, tvb(1, 2))
  tree:add(f.epoch, tvb(3, 8))
  tree:add(f.counter, tvb(11, 4))
  tree:append_text(string.format(", sender %d", tvb(1, 2):uint()))
end

function ncmesh.dissector(tvb, pinfo, root)
  local length = tvb:len()
  if length == 0 or tvb(0, 1):bitfield(0, 4) ~= MARK then return 0 end
  pinfo.cols.protocol = "ncmesh"
  local tree = root:add(ncmesh, tvb())
  tree:add(f.mark, tvb(0, 1))
  tree:add(f.version, tvb(0, 1))
  if tvb(0, 1):bitfield(4, 4) ~= VERSION then
    tree:add_proto_expert_info(e.foreign_version)
    pinfo.cols.info = "another version"
    return length
  end
  if length >= HEADER_LEN then show_header(tvb, tree) end
  if tvb:reported_len() > length then
    -- Without the tag nobody knows whether the body is encrypted.
    tree:add_proto_expert_info(e.cut)
    pinfo.cols.info = "captured in part"
  elseif length < SHORTEST then
    tree:add_proto_expert_info(e.malformed, "Shorter than the shortest frame")
    pinfo.cols.info = "malformed"
  else
    local tag = tvb(length - TAG_LEN, TAG_LEN)
    local is_null = tag:bytes():tohex() == string.rep("0", 2 * TAG_LEN)
    local show = is_null and show_body or show_sealed
    show(tvb, length - TAG_LEN, pinfo, tree)
    tree:add(f.tag, tag)
  end
  return length
end

DissectorTable.get("ethertype"):add(ETHERTYPE, ncmesh)
DissectorTable.get("udp.port"):add(UDP_PORT, ncmesh)
