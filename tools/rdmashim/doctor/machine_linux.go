package doctor

import (
	"bytes"
	"encoding/binary"

	"github.com/google/nftables"
	"github.com/google/nftables/expr"
	"github.com/google/nftables/xt"
	"golang.org/x/sys/unix"
)

// answer is what a rule's condition says of a packet of which not all is known.
type answer int

const (
	yes answer = iota
	maybe
	no
)

// effect is what a rule does to a packet that it matches.
type effect struct {
	drop, rewrite bool
	kind          expr.VerdictKind
	chain         string
}

// step is what became of a packet at a rule.
type step struct {
	match   answer
	verdict *effect // nil: on to the next rule
}

// machine runs the expressions of one rule, as the kernel's nft_do_chain does, on
// registers whose bytes may be unknown.
type machine struct {
	walk  *walk
	table *nftables.Table
	rule  *nftables.Rule
	bytes [64]byte
	known [64]bool
	match answer
	out   *effect
}

// register gives a register's bytes: 1 … 4 have 16 each, 8 … 23 have 4 each of
// the same 64 (nf_tables.h: enum nft_registers).
func register(n, length uint32) (from, to uint32) {
	switch {
	case n >= unix.NFT_REG_1 && n <= unix.NFT_REG_4:
		from = (n - unix.NFT_REG_1) * 16
	case n >= unix.NFT_REG32_00 && n <= unix.NFT_REG32_15:
		from = (n - unix.NFT_REG32_00) * 4
	}
	return from, min(from+length, 64)
}

// set stores bytes; those beyond are of no meaning.
func (m *machine) set(reg uint32, data []byte, known []bool) {
	from, to := register(reg, uint32(len(data)))
	copy(m.bytes[from:to], data)
	copy(m.known[from:to], known)
}

func (m *machine) setKnown(reg uint32, data []byte) {
	known := make([]bool, len(data))
	for i := range known {
		known[i] = true
	}
	m.set(reg, data, known)
}

func (m *machine) forget(reg uint32) {
	from, to := register(reg, 16)
	clear(m.known[from:to])
}

// get reads bytes and whether all are known.
func (m *machine) get(reg uint32, length int) (data []byte, known []bool, all bool) {
	from, to := register(reg, uint32(length))
	data, known, all = m.bytes[from:to], m.known[from:to], true
	for _, k := range known {
		all = all && k
	}
	return data, known, all && len(data) == length
}

// test lowers the answer.
func (m *machine) test(a answer) { m.match = max(m.match, a) }

func truth(b bool) answer {
	if b {
		return yes
	}
	return no
}

// run goes through the rule until it does not match or decides.
func (m *machine) run() step {
	for _, e := range m.rule.Exprs {
		m.execute(e)
		if m.match == no || m.out != nil {
			break
		}
	}
	return step{m.match, m.out}
}

func (m *machine) execute(e expr.Any) {
	switch e := e.(type) {
	case *expr.Meta:
		m.meta(e)
	case *expr.Payload:
		m.payload(e)
	case *expr.Ct:
		m.ct(e)
	case *expr.Immediate:
		m.setKnown(e.Register, e.Data)
	case *expr.Bitwise:
		m.bitwise(e)
	case *expr.Cmp:
		m.cmp(e)
	case *expr.Range:
		m.inRange(e)
	case *expr.Lookup:
		m.lookup(e)
	case *expr.Verdict:
		m.out = &effect{kind: e.Kind, chain: e.Chain}
	case *expr.Reject:
		m.out = &effect{drop: true}
	case *expr.Masq, *expr.NAT, *expr.Redir:
		m.out = &effect{rewrite: true}
	case *expr.Match:
		m.xtMatch(e)
	case *expr.Target:
		m.xtTarget(e)
	case *expr.Fib:
		m.forget(e.Register)
	case *expr.Exthdr:
		m.forget(e.DestRegister)
	case *expr.Hash:
		m.forget(e.DestRegister)
	case *expr.Numgen:
		m.forget(e.Register)
	case *expr.Counter, *expr.Log, *expr.Notrack, *expr.Objref, *expr.Dynset, *expr.FlowOffload, *expr.CtHelper, *expr.CtTimeout, *expr.SecMark:
		// They count and mark. Expressions that the library does not know load
		// registers, which are unknown then: one is forgotten when it was compared.
	case *expr.Queue:
		m.out = &effect{kind: expr.VerdictQueue}
	default: // Limit, Quota, Connlimit: some pass
		m.test(maybe)
	}
}

// meta loads what is known of the packet besides its bytes.
func (m *machine) meta(e *expr.Meta) {
	if e.SourceRegister {
		return // meta mark set …
	}
	p := &m.walk.p
	in := p.Hook == HookPrerouting || p.Hook == HookInput
	name := make([]byte, unix.IFNAMSIZ)
	index := make([]byte, 4)
	family, ethertype := byte(unix.NFPROTO_IPV4), uint16(unix.ETH_P_IP)
	if p.V6 {
		family, ethertype = unix.NFPROTO_IPV6, unix.ETH_P_IPV6
	}
	switch e.Key {
	case expr.MetaKeyIIFNAME, expr.MetaKeyOIFNAME:
		if in == (e.Key == expr.MetaKeyIIFNAME) {
			copy(name, p.NetDev)
		}
		m.setKnown(e.Register, name)
	case expr.MetaKeyIIF, expr.MetaKeyOIF:
		if in == (e.Key == expr.MetaKeyIIF) {
			binary.NativeEndian.PutUint32(index, uint32(p.Index))
		}
		m.setKnown(e.Register, index)
	case expr.MetaKeyL4PROTO:
		m.setKnown(e.Register, []byte{unix.IPPROTO_UDP})
	case expr.MetaKeyNFPROTO:
		m.setKnown(e.Register, []byte{family})
	case expr.MetaKeyPROTOCOL:
		m.setKnown(e.Register, binary.BigEndian.AppendUint16(nil, ethertype))
	default:
		m.forget(e.Register)
	}
}

// header is what is known of the packet's bytes.
func (p *Packet) header(base expr.PayloadBase) (data []byte, known []bool) {
	data, known = make([]byte, 64), make([]bool, 64)
	put := func(at int, b ...byte) {
		copy(data[at:], b)
		for i := range b {
			known[at+i] = true
		}
	}
	switch {
	case base == expr.PayloadBaseTransportHeader:
		put(2, byte(p.Port>>8), byte(p.Port))
	case base != expr.PayloadBaseNetworkHeader:
	case p.V6:
		put(6, unix.IPPROTO_UDP)
		put(8, p.Src.AsSlice()...)
		put(24, p.Dst.AsSlice()...)
	default:
		put(9, unix.IPPROTO_UDP)
		put(12, p.Src.AsSlice()...)
		put(16, p.Dst.AsSlice()...)
	}
	return data, known
}

func (m *machine) payload(e *expr.Payload) {
	if e.OperationType == expr.PayloadWrite {
		return
	}
	data, known := m.walk.p.header(e.Base)
	if e.Offset+e.Len > uint32(len(data)) {
		m.forget(e.DestRegister)
		return
	}
	m.set(e.DestRegister, data[e.Offset:e.Offset+e.Len], known[e.Offset:e.Offset+e.Len])
}

// ct: the packet is the first of its flow.
func (m *machine) ct(e *expr.Ct) {
	switch {
	case e.SourceRegister:
	case e.Key == expr.CtKeySTATE:
		m.setKnown(e.Register, binary.NativeEndian.AppendUint32(nil, expr.CtStateBitNEW))
	default:
		m.forget(e.Register)
	}
}

// bitwise is (source & mask) ^ xor: a byte that the mask clears is known.
func (m *machine) bitwise(e *expr.Bitwise) {
	if len(e.Mask) != int(e.Len) || len(e.Xor) != int(e.Len) {
		m.forget(e.DestRegister)
		return
	}
	data, known, _ := m.get(e.SourceRegister, int(e.Len))
	if len(data) != int(e.Len) {
		m.forget(e.DestRegister)
		return
	}
	out, sure := make([]byte, e.Len), make([]bool, e.Len)
	for i := range out {
		out[i] = data[i]&e.Mask[i] ^ e.Xor[i]
		sure[i] = known[i] || e.Mask[i] == 0
	}
	m.set(e.DestRegister, out, sure)
}

func (m *machine) cmp(e *expr.Cmp) {
	data, known, all := m.get(e.Register, len(e.Data))
	defer m.forget(e.Register)
	if !all {
		differ := false
		for i := range data {
			differ = differ || known[i] && data[i] != e.Data[i]
		}
		switch {
		case differ && e.Op == expr.CmpOpEq:
			m.test(no)
		case differ && e.Op == expr.CmpOpNeq:
		default:
			m.test(maybe)
		}
		return
	}
	c := bytes.Compare(data, e.Data)
	m.test(truth(map[expr.CmpOp]bool{
		expr.CmpOpEq: c == 0, expr.CmpOpNeq: c != 0, expr.CmpOpLt: c < 0,
		expr.CmpOpLte: c <= 0, expr.CmpOpGt: c > 0, expr.CmpOpGte: c >= 0,
	}[e.Op]))
}

func (m *machine) inRange(e *expr.Range) {
	data, _, all := m.get(e.Register, len(e.FromData))
	defer m.forget(e.Register)
	if !all {
		m.test(maybe)
		return
	}
	in := bytes.Compare(data, e.FromData) >= 0 && bytes.Compare(data, e.ToData) <= 0
	m.test(truth(in == (e.Op == expr.CmpOpEq)))
}

// lookup finds a register's value in a set, or in a map of verdicts.
func (m *machine) lookup(e *expr.Lookup) {
	defer m.forget(e.SourceRegister)
	list := m.walk.r.elements(m.table, e.SetName)
	toVerdict := e.IsDestRegSet && e.DestRegister == unix.NFT_REG_VERDICT
	found, sure := m.element(list, e.SourceRegister)
	if !sure {
		m.test(maybe)
		if toVerdict {
			m.out = anyVerdict(list)
		} else if e.IsDestRegSet {
			m.forget(e.DestRegister)
		}
		return
	}
	m.test(truth((found != nil) != e.Invert))
	switch {
	case found == nil:
	case toVerdict:
		m.out = verdictOf(found.Val)
	case e.IsDestRegSet:
		m.setKnown(e.DestRegister, found.Val)
	}
}

// element finds the element that holds a register's value; not sure where the
// value, or what the set means by it, is not known.
func (m *machine) element(list []nftables.SetElement, reg uint32) (found *nftables.SetElement, sure bool) {
	interval := false
	for _, x := range list {
		interval = interval || x.IntervalEnd
	}
	for i := range list {
		x := &list[i]
		key, _, all := m.get(reg, len(x.Key))
		if !all || len(x.KeyEnd) > 0 {
			return nil, false
		}
		c := bytes.Compare(x.Key, key)
		switch {
		case !interval && c == 0:
			return x, true
		case interval && c <= 0 && (found == nil || bytes.Compare(x.Key, found.Key) >= 0):
			found = x // the last edge at or below the value
		}
	}
	if found != nil && found.IntervalEnd {
		found = nil
	}
	return found, true
}

// verdictOf reads the attributes of a verdict in a map: code and chain.
func verdictOf(b []byte) *effect {
	v := &effect{kind: expr.VerdictContinue}
	netlinkAttrs(b, func(kind uint16, value []byte) {
		switch {
		case kind == unix.NFTA_VERDICT_CODE && len(value) == 4:
			v.kind = expr.VerdictKind(int32(binary.BigEndian.Uint32(value)))
		case kind == unix.NFTA_VERDICT_CHAIN:
			v.chain = string(bytes.TrimRight(value, "\x00"))
		}
	})
	return v
}

// anyVerdict is one that a map may give: a drop before all others.
func anyVerdict(list []nftables.SetElement) (v *effect) {
	for _, x := range list {
		if o := verdictOf(x.Val); v == nil || o.kind == expr.VerdictDrop {
			v = o
		}
	}
	return v
}

// xtMatch is a condition of iptables-nft.
func (m *machine) xtMatch(e *expr.Match) {
	switch info := e.Info.(type) {
	case *xt.Comment:
	case *xt.Tcp:
		m.test(no)
	case *xt.Udp:
		p := m.walk.p.Port
		in := p >= info.DstPorts[0] && p <= info.DstPorts[1]
		m.test(truth(in != (info.InvFlags&xt.UdpInvDestPorts != 0)))
		if info.SrcPorts != [2]uint16{0, 65535} {
			m.test(maybe)
		}
	case *xt.ConntrackMtinfo3:
		m.xtState(info.MatchFlags, info.InvertFlags, info.StateMask)
	case *xt.ConntrackMtinfo2:
		m.xtState(info.MatchFlags, info.InvertFlags, info.StateMask)
	default:
		m.test(maybe)
	}
}

func (m *machine) xtState(match, invert, mask uint16) {
	const state = uint16(xt.ConntrackState)
	if match&^uint16(xt.ConntrackState|xt.ConntrackStateAlias) != 0 {
		m.test(maybe)
		return
	}
	m.test(truth((uint32(mask)&expr.CtStateBitNEW != 0) != (invert&state != 0)))
}

// xtTarget is what a rule of iptables-nft does; most only mark or count.
func (m *machine) xtTarget(e *expr.Target) {
	switch e.Name {
	case "REJECT", "DROP":
		m.out = &effect{drop: true}
	case "MASQUERADE", "SNAT", "DNAT", "REDIRECT", "NETMAP":
		m.out = &effect{rewrite: true}
	}
}
