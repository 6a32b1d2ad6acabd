package virtual

import (
	"encoding/binary"
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"github.com/rdmashim/rdmashim/kshim/abi"
	"github.com/rdmashim/rdmashim/rnic/engine"
	"github.com/rdmashim/rdmashim/rnic/mem"
)

// script plays commands on two nodes, a and b, with a queue pair each. Packets
// wait in the middle until a command delivers them.
type script struct {
	Unwatched
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
	{"closed", 0x50000, 0},                  // no peer may write here
}

const scriptRegionSize = 64 << 10

// do plays a command.
func (s *script) do(line string) error {
	f := strings.Fields(line)
	args := parseArgs(f[1:])
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
	case "sleep":
		d, err := parseDuration(args.word(1))
		if err == nil {
			s.w.Freeze(s.w.nodes[args.node(0)], s.w.now+d)
			err = s.w.Run(s.w.now+d+2, 1000)
		}
		return err
	case "state":
		s.printf("a %s, b %s", s.qps["a"].State(), s.qps["b"].State())
	case "modify":
		to := map[string]abi.QPState{"err": abi.QPSErr, "reset": abi.QPSReset}[args.word(1)]
		return s.qps[args.word(0)].Modify(to, &engine.Attr{}, 0)
	case "connect":
		return s.connect(args)
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

// Completed prints a completion.
func (s *script) Completed(qp *QP, c *engine.Completion) {
	s.printf("%s: %s", qp.Node.Name, formatCompletion(c))
}

var keyText = regexp.MustCompile(`0x[0-9a-f]{8}\b`)

// printf prints a line, after the time where that has moved. Keys are random
// and shown by the names of their regions.
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

// deliver: deliver a->b [n=2] [drop=psn:3,psn:4] [dup=psn:3] [corrupt=psn:3]
// [last=psn:3] [keep=psn:3]. Kept packets are delivered too, and a copy again
// with the command late. It delivers the packets under way now, not their
// consequences.
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
	if same == n {
		s.printf("equal")
	} else {
		s.printf("equal for %d bytes", same)
	}
	return nil
}

// count: count a drop_stale_ack …
func (s *script) count(o options) error {
	for i := 1; o.word(i) != ""; i++ {
		found := false
		s.qps[o.word(0)].Counters().Each(func(name string, value uint64) {
			if name == o.word(i) {
				s.printf("%s=%d", name, value)
				found = true
			}
		})
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
