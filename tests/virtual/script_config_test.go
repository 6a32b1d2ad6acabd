package virtual

import (
	"net/netip"

	"github.com/rdmashim/rdmashim/kshim/abi"
	"github.com/rdmashim/rdmashim/rnic/engine"
	"github.com/rdmashim/rdmashim/rnic/mem"
	"github.com/rdmashim/rdmashim/rnic/wire"
)

// config makes the world: mtu, psn (of a's requests), psnb, timeout, retry,
// rnr, minrnr, rd, destrd, window, depth, access=none for b, and repeat:
// selective for both ends, or for a or b alone.
func (s *script) config(o options) error {
	s.w, s.at, s.kept = New(Options{}), 0, nil
	s.w.opts.Watch = s
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
		if o["repeat"] != "selective" && o["repeat"] != name {
			n.Stash = nil
		}
		for k, r := range scriptRegions {
			b := make([]byte, scriptRegionSize)
			if r.name == "out" {
				for i := range b {
					b[i] = byte(i*7 + i>>8 + k)
				}
			}
			reg, err := n.Regions.Register(1, mem.Near(b), r.iova, r.access)
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
	return s.connect(o)
}

// connect takes both queue pairs from RESET to RTS.
func (s *script) connect(o options) error {
	a, b := s.qps["a"], s.qps["b"]
	attr := engine.Attr{
		PathMTU:     map[int]abi.MTU{256: abi.MTU256, 512: abi.MTU512, 1024: abi.MTU1024, 2048: abi.MTU2048, 4096: abi.MTU4096}[s.mtu],
		Access:      abi.AccessRemoteWrite | abi.AccessRemoteRead | abi.AccessRemoteAtomic,
		MaxRdAtomic: uint8(o.number("rd", 4)), MaxDestRdAtomic: uint8(o.number("destrd", o.number("rd", 4))),
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
