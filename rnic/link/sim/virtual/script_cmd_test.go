package virtual

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"net/netip"
	"regexp"
	"strconv"
	"strings"

	"github.com/rdmashim/rdmashim/kshim/abi"
	"github.com/rdmashim/rdmashim/rnic/engine"
	"github.com/rdmashim/rdmashim/rnic/link"
	"github.com/rdmashim/rdmashim/rnic/mem"
	"github.com/rdmashim/rdmashim/rnic/wire"
)

// script plays commands on two nodes, a and b, with a queue pair each. Packets
// wait in the middle until a command delivers them.
type script struct {
	w     *World
	qps   map[string]*QP
	mem   map[string][]byte      // "a.out" …
	regs  map[string]*mem.Region // by the same names
	names map[uint32]string      // regions by key
	queue map[string][]*Flight   // "a->b" …
	kept  []*Flight
	ids   map[string]uint64
	mtu   int
	out   []string
	at    engine.Time // the time that was printed last
}

// Each node has the same regions, at the same addresses.
var scriptRegions = []struct {
	name   string
	iova   uint64
	access abi.AccessFlags
}{
	{"out", 0x10000, abi.AccessLocalWrite}, // sent from here
	{"mem", 0x20000, abi.AccessLocalWrite | abi.AccessRemoteWrite | abi.AccessRemoteRead | abi.AccessRemoteAtomic}, // the peer's target
	{"in", 0x30000, abi.AccessLocalWrite},   // receives
	{"back", 0x40000, abi.AccessLocalWrite}, // READs and atomics end here
	{"closed", 0x50000, 0},                  // nobody may write here
}

const scriptRegionSize = 64 << 10

func newScript() *script { return &script{} }

// do plays a command.
func (s *script) do(line string) error {
	f := strings.Fields(line)
	args, err := parseArgs(f[1:])
	if err != nil {
		return err
	}
	if f[0] != "config" && s.w == nil {
		if err := s.config(options{}); err != nil {
			return err
		}
	}
	switch f[0] {
	case "config":
		return s.config(args)
	case "post":
		return s.post(args)
	case "recv":
		return s.recv(args)
	case "deliver":
		return s.deliver(args)
	case "late":
		for _, f := range s.kept {
			s.w.Deliver(f)
		}
		s.kept = nil
	case "run":
		return s.run()
	case "advance":
		return s.advance(args)
	case "state":
		s.printf("a %s, b %s", s.qps["a"].State(), s.qps["b"].State())
	case "modify":
		return s.qps[args.word(0)].Modify(abi.QPSErr, &engine.Attr{}, 0)
	case "dereg":
		return s.w.nodes[args.node(0)].Regions.Deregister(s.regs[args.word(0)+"."+args.word(1)].Key())
	case "compare":
		return s.compare(args)
	case "word":
		v, err := s.place(args.word(0), 8)
		if err == nil {
			s.printf("%d", binary.NativeEndian.Uint64(v))
		}
		return err
	case "set":
		v, err := s.place(args.word(0), 8)
		if err == nil {
			binary.NativeEndian.PutUint64(v, uint64(args.number("to", 0)))
		}
		return err
	case "count":
		return s.count(args)
	default:
		return fmt.Errorf("no such command")
	}
	return nil
}

// config makes the world: mtu, psn (of a's requests), psnb, timeout, retry, rnr,
// minrnr, rd, window, depth, and access=none for b.
func (s *script) config(o options) error {
	s.w, s.at, s.kept = New(Options{}), 0, nil
	s.w.watch = scriptWatch{s}
	s.w.Carry = func(f *Flight) {
		s.printf("%s", f)
		way := f.From.Name + "->" + f.To.Name
		s.queue[way] = append(s.queue[way], f)
	}
	s.qps, s.mem, s.regs = map[string]*QP{}, map[string][]byte{}, map[string]*mem.Region{}
	s.names, s.queue, s.ids = map[uint32]string{}, map[string][]*Flight{}, map[string]uint64{}
	s.mtu = o.number("mtu", 256)
	for i, name := range []string{"a", "b"} {
		n := s.w.AddNode(name, netip.AddrFrom4([4]byte{10, 0, 0, byte(1 + i)}))
		for k, r := range scriptRegions {
			b := make([]byte, scriptRegionSize)
			if r.name == "out" {
				for i := range b {
					b[i] = byte(i*7 + i>>8 + k)
				}
			}
			reg, err := n.Regions.Register(1, b, r.iova, r.access)
			if err != nil {
				return err
			}
			s.mem[name+"."+r.name], s.regs[name+"."+r.name] = b, reg
			s.names[reg.Key()] = name + "." + r.name
		}
		s.qps[name] = n.AddQP(engine.Config{
			QPN: wire.QPN(17 + i), PD: 1, SendDepth: o.number("depth", 16), MaxSendSGE: 4, MaxRecvSGE: 4, MaxInline: 256,
			Tuning: engine.Tuning{InitialWindow: o.number("window", 0), MaxWindow: o.number("window", 0)},
		})
	}
	a, b := s.qps["a"], s.qps["b"]
	attr := engine.Attr{
		PathMTU:     map[int]abi.MTU{256: abi.MTU256, 512: abi.MTU512, 1024: abi.MTU1024, 2048: abi.MTU2048, 4096: abi.MTU4096}[s.mtu],
		Access:      abi.AccessRemoteWrite | abi.AccessRemoteRead | abi.AccessRemoteAtomic,
		MaxRdAtomic: uint8(o.number("rd", 4)), MaxDestRdAtomic: uint8(o.number("rd", 4)),
		MinRNRTimer: wire.RNRTimer(o.number("minrnr", 12)), Timeout: wire.AckTimeout(o.number("timeout", 14)),
		RetryCnt: uint8(o.number("retry", 7)), RNRRetry: uint8(o.number("rnr", 7)),
	}
	psn, psnb := wire.PSN(o.number("psn", 100)), wire.PSN(o.number("psnb", 500))
	attr.Peer, attr.DestQPN, attr.SQPSN, attr.RQPSN = b.At(), b.Num, psn, psnb
	if err := a.Connect(attr); err != nil {
		return err
	}
	if o["access"] == "none" {
		attr.Access = 0
	}
	attr.Peer, attr.DestQPN, attr.SQPSN, attr.RQPSN = a.At(), a.Num, psnb, psn
	return b.Connect(attr)
}

// scriptWatch prints completions.
type scriptWatch struct{ s *script }

func (scriptWatch) Sent(*Flight)                       {}
func (scriptWatch) Dropped(*Flight, Fault)             {}
func (scriptWatch) Arrives(*Flight, *QP, *wire.Packet) {}
func (scriptWatch) Arrived(*Flight, *QP, *wire.Packet) {}
func (x scriptWatch) Completed(qp *QP, c *engine.Completion) {
	x.s.printf("%s: %s", qp.Node.Name, FormatCompletion(c))
}

var keyText = regexp.MustCompile(`0x[0-9a-f]{8}\b`)

// printf prints a line, after the time where that has moved. Keys are random and
// shown by the names of their regions.
func (s *script) printf(format string, args ...any) {
	if s.w.now != s.at {
		s.at = s.w.now
		s.out = append(s.out, fmt.Sprintf("at %gms:", float64(s.at)/1e6))
	}
	line := fmt.Sprintf(format, args...)
	line = keyText.ReplaceAllStringFunc(line, func(k string) string {
		v, _ := strconv.ParseUint(k[2:], 16, 32)
		if name := s.names[uint32(v)]; name != "" {
			return name
		}
		return k
	})
	s.out = append(s.out, line)
}

var kinds = map[string]abi.WROpcode{
	"write": abi.WRRDMAWrite, "write-imm": abi.WRRDMAWriteWithImm, "send": abi.WRSend, "send-imm": abi.WRSendWithImm,
	"send-inv": abi.WRSendWithInv, "read": abi.WRRDMARead, "add": abi.WRAtomicFetchAndAdd, "cas": abi.WRAtomicCmpAndSwp,
}

// post: post a write [len=5mtu] [from=0] [to=0] [imm=7] [add=5] [compare=1 swap=2]
// [rkey=bad|closed] [lkey=bad] [silent] [fence] [solicited] [inline]
func (s *script) post(o options) error {
	who := o.word(0)
	code, ok := kinds[strings.TrimPrefix(o.word(1), "a ")]
	if o.word(1) == "a" || o.word(1) == "an" { // "post a write" reads well; so does "post b a write"
		code, ok = kinds[o.word(2)]
	}
	qp := s.qps[who]
	if !ok || qp == nil {
		return fmt.Errorf("post WHO KIND, of %v", kinds)
	}
	peer := map[string]string{"a": "b", "b": "a"}[who]
	s.ids[who]++
	wr := &engine.SendWR{ID: s.ids[who], Opcode: code, Flags: abi.SendSignaled}
	for word, f := range map[string]abi.SendFlags{"fence": abi.SendFence, "solicited": abi.SendSolicited, "inline": abi.SendInline} {
		if o.has(word) {
			wr.Flags |= f
		}
	}
	if o.has("silent") {
		wr.Flags &^= abi.SendSignaled
	}
	binary.BigEndian.PutUint32(wr.Imm[:], uint32(o.number("imm", 0)))
	wr.RemoteAddr = uint64(0x20000 + s.length(o, "to", 0))
	wr.RKey = s.key(peer, o["rkey"], "mem")
	wr.Invalidate = s.key(peer, o["invalidate"], "mem")
	wr.CompareAdd, wr.Swap = uint64(o.number("add", o.number("compare", 0))), uint64(o.number("swap", 0))
	n, local, iova := s.length(o, "len", 0), "out", uint64(0x10000)
	switch code {
	case abi.WRAtomicCmpAndSwp, abi.WRAtomicFetchAndAdd:
		n, local, iova = 8, "back", 0x40000
	case abi.WRRDMARead:
		local, iova = "back", 0x40000
	}
	from := s.length(o, "from", 0)
	if wr.Flags&abi.SendInline != 0 {
		wr.Inline = s.mem[who+".out"][from : from+n]
	} else {
		wr.SGE = []mem.SGE{{Addr: iova + uint64(from), Length: uint32(n), LKey: s.key(who, o["lkey"], local)}}
	}
	if err := qp.Post(wr); err != nil {
		s.printf("post: %v", err)
	}
	return nil
}

// key is the key of a node's region by name; "bad" is one that nobody has.
func (s *script) key(node, name, otherwise string) uint32 {
	if name == "" {
		name = otherwise
	}
	if r := s.regs[node+"."+name]; r != nil {
		return r.Key()
	}
	return 0xdeadbe00
}

// recv: recv b [len=1mtu] [n=1] [lkey=bad]
func (s *script) recv(o options) error {
	who := o.word(0)
	for range o.number("n", 1) {
		s.ids[who+"recv"]++
		id := s.ids[who+"recv"]
		n := s.length(o, "len", s.mtu)
		s.qps[who].PostReceive(engine.ReceiveWR{ID: id, SGE: []mem.SGE{{
			Addr: 0x30000 + (id-1)*0x1000, Length: uint32(n), LKey: s.key(who, o["lkey"], "in"),
		}}})
	}
	s.qps[who].Poke()
	return nil
}

// deliver: deliver a->b [n=2] [drop=psn:3,psn:4] [dup=psn:3] [corrupt=psn:3]
// [last=psn:3] [keep=psn:3]. What is kept is delivered too, and a copy again with
// the command late. It delivers what is under way now, not what that leads to.
func (s *script) deliver(o options) error {
	way := o.word(0)
	batch := s.queue[way]
	if n := o.number("n", len(batch)); n < len(batch) {
		s.queue[way] = append([]*Flight(nil), batch[n:]...)
		batch = batch[:n]
	} else {
		s.queue[way] = nil
	}
	if len(batch) == 0 {
		s.printf("nothing under way")
	}
	var late []*Flight
	for _, f := range batch {
		p, err := f.Packet()
		if err != nil {
			return err
		}
		psn := fmt.Sprintf("psn:%d", p.PSN)
		if o.lists("keep", psn) {
			s.kept = append(s.kept, s.w.copyFlight(f))
		}
		switch {
		case o.lists("drop", psn):
			s.printf("lost: %s", f)
		case o.lists("last", psn):
			late = append(late, f)
		case o.lists("corrupt", psn):
			f.Corrupt(len(f.Bytes)*4 + 1)
			icrc := s.w.Drops.ICRC
			s.w.Deliver(f)
			if s.w.Drops.ICRC != icrc+1 {
				return fmt.Errorf("a corrupt packet passed the ICRC")
			}
			s.printf("dropped for its ICRC: psn=%d", p.PSN)
		case o.lists("dup", psn):
			again := s.w.copyFlight(f)
			s.w.Deliver(f)
			s.w.Deliver(again)
		default:
			s.w.Deliver(f)
		}
	}
	for _, f := range late {
		s.w.Deliver(f)
	}
	return nil
}

// run delivers until nothing is under way.
func (s *script) run() error {
	for range 1000 {
		if len(s.queue["a->b"])+len(s.queue["b->a"]) == 0 {
			return nil
		}
		for _, way := range []string{"a->b", "b->a"} {
			if len(s.queue[way]) > 0 {
				if err := s.deliver(options{"0": way}); err != nil {
					return err
				}
			}
		}
	}
	return fmt.Errorf("it never ends")
}

// advance: advance 4ms
func (s *script) advance(o options) error {
	d, err := parseDuration(o.word(0))
	if err != nil {
		return err
	}
	return s.w.Run(s.w.now+d, 100000)
}

// compare: compare a.out[0] b.mem[0] len=5mtu
func (s *script) compare(o options) error {
	n := s.length(o, "len", 0)
	x, err := s.place(o.word(0), n)
	if err != nil {
		return err
	}
	y, err := s.place(o.word(1), n)
	if err != nil {
		return err
	}
	same := 0
	for same < n && x[same] == y[same] {
		same++
	}
	switch {
	case bytes.Equal(x, y):
		s.printf("equal")
	default:
		s.printf("equal for %d bytes", same)
	}
	return nil
}

// count: count a drop_stale_ack …
func (s *script) count(o options) error {
	var list []link.Counter
	list = s.qps[o.word(0)].Counters().List(list)
	for i := 1; o.word(i) != ""; i++ {
		found := false
		for _, c := range list {
			if c.Name == o.word(i) {
				s.printf("%s=%d", c.Name, c.Value)
				found = true
			}
		}
		if !found {
			return fmt.Errorf("no counter %q", o.word(i))
		}
	}
	return nil
}

var placeText = regexp.MustCompile(`^([ab]\.[a-z]+)\[(\d+)\]$`)

// place is memory by name: "b.mem[256]".
func (s *script) place(text string, n int) ([]byte, error) {
	m := placeText.FindStringSubmatch(text)
	if m == nil || s.mem[m[1]] == nil {
		return nil, fmt.Errorf("%q is no memory; b.mem[256] is", text)
	}
	at, _ := strconv.Atoi(m[2])
	return s.mem[m[1]][at : at+n], nil
}

// length reads 300, 2mtu, 2mtu+1 or 2mtu-1.
func (s *script) length(o options, name string, otherwise int) int {
	text, ok := o[name]
	if !ok {
		return otherwise
	}
	whole, rest, hasMTU := strings.Cut(text, "mtu")
	n, err := strconv.Atoi(whole)
	if !hasMTU {
		if err != nil {
			panic(fmt.Sprintf("%s=%s is no length", name, text))
		}
		return n
	}
	add, _ := strconv.Atoi(rest)
	return n*s.mtu + add
}

// options are a command's words: those without "=" by their place and as flags.
type options map[string]string

func parseArgs(words []string) (options, error) {
	o := options{}
	for i, k := 0, 0; i < len(words); i++ {
		name, value, ok := strings.Cut(words[i], "=")
		if ok {
			o[name] = value
			continue
		}
		o[strconv.Itoa(k)] = words[i]
		o["flag "+words[i]] = ""
		k++
	}
	return o, nil
}

func (o options) word(i int) string { return o[strconv.Itoa(i)] }
func (o options) node(i int) int    { return strings.Index("ab", o.word(i)) }
func (o options) has(f string) bool { _, ok := o["flag "+f]; return ok }

func (o options) number(name string, otherwise int) int {
	v, ok := o[name]
	if !ok {
		return otherwise
	}
	n, err := strconv.ParseInt(v, 0, 64)
	if err != nil {
		panic(err)
	}
	return int(n)
}

// lists reports whether an option's list, separated by commas, has the item.
func (o options) lists(name, item string) bool {
	for _, x := range strings.Split(o[name], ",") {
		if x == item {
			return true
		}
	}
	return false
}

func parseDuration(text string) (engine.Time, error) {
	for _, u := range []struct {
		suffix string
		unit   float64
	}{{"us", 1e3}, {"ms", 1e6}, {"s", 1e9}} {
		if n, ok := strings.CutSuffix(text, u.suffix); ok {
			v, err := strconv.ParseFloat(n, 64)
			return engine.Time(v * u.unit), err
		}
	}
	return 0, fmt.Errorf("%q is no time", text)
}
