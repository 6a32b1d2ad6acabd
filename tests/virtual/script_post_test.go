package virtual

import (
	"encoding/binary"
	"fmt"
	"strings"

	"github.com/rdmashim/rdmashim/kshim/abi"
	"github.com/rdmashim/rdmashim/rnic/engine"
	"github.com/rdmashim/rdmashim/rnic/mem"
)

var kinds = map[string]abi.WROpcode{
	"write": abi.WRRDMAWrite, "write-imm": abi.WRRDMAWriteWithImm, "send": abi.WRSend, "send-imm": abi.WRSendWithImm,
	"send-inv": abi.WRSendWithInv, "read": abi.WRRDMARead, "add": abi.WRAtomicFetchAndAdd, "cas": abi.WRAtomicCmpAndSwp,
}

// post: post a write [len=5mtu] [from=0] [to=0] [imm=7] [add=5] [compare=1
// swap=2] [rkey=bad|closed] [lkey=bad] [silent] [fence] [solicited] [inline]
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

// key is the key of a node's region by name; "bad" is a key that no region has.
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
