package doctor

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"testing"

	"github.com/google/nftables"
	"github.com/google/nftables/expr"
	"github.com/google/nftables/xt"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// TestFilterAgainstKernel makes rulesets at random and compares what is said of a
// packet with what the kernel does to it: of one that is dropped on its way out,
// sending says so (EPERM).
func TestFilterAgainstKernel(t *testing.T) {
	if !namespaced(t) {
		return
	}
	const rulesets = 300
	dropped, unsure := 0, 0
	for seed := range uint64(rulesets) {
		g := &generator{table: newTableOf(t, []nftables.TableFamily{nftables.TableFamilyINet, nftables.TableFamilyIPv4}[seed%2]), Rand: rand.New(rand.NewPCG(seed, 0))}
		g.make()
		for _, port := range []uint16{4791, 4792, 53} {
			p := Packet{Hook: HookOutput, NetDev: "lo", Index: 1, Src: netip.MustParseAddr("127.0.0.1"), Dst: netip.MustParseAddr("127.0.0.1"), Port: port}
			ask, _ := newFilter()
			v, err := ask(p)
			require.NoError(t, err)
			refused := sendRefused(t, port)
			switch {
			case v.Drop && v.Sure:
				require.True(t, refused, "seed %d port %d: dropped, it is said: %s\n%s", seed, port, v.Rule, g.log)
				dropped++
			case v.Drop:
				unsure++
			default:
				require.False(t, refused, "seed %d port %d: the kernel drops it\n%s", seed, port, g.log)
			}
		}
		g.conn.FlushRuleset()
		g.flush()
	}
	t.Logf("%d of %d packets were dropped, of %d it was not sure", dropped, 3*rulesets, unsure)
	require.Greater(t, dropped, rulesets/2)
	require.NotZero(t, unsure)
	require.Less(t, unsure, dropped)
}

// sendRefused sends a datagram of a new flow over lo.
func sendRefused(t *testing.T, port uint16) bool {
	t.Helper()
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	require.NoError(t, err)
	defer unix.Close(fd)
	require.NoError(t, unix.Bind(fd, &unix.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}))
	err = unix.Sendto(fd, []byte("x"), 0, &unix.SockaddrInet4{Port: int(port), Addr: [4]byte{127, 0, 0, 1}})
	if errors.Is(err, unix.EPERM) {
		return true
	}
	require.NoError(t, err)
	return false
}

// generator makes a ruleset.
type generator struct {
	*table
	*rand.Rand
	subs []*nftables.Chain
	sets int
	log  string
}

func (g *generator) make() {
	policy := nftables.ChainPolicy(g.IntN(2))
	out := g.base("output", nftables.ChainTypeFilter, nftables.ChainHookOutput, policy)
	g.log += fmt.Sprintf("policy %d\n", policy)
	if g.IntN(3) == 0 { // a base chain before it, which cannot accept for it
		early := g.conn.AddChain(&nftables.Chain{Name: "early", Table: g.Table, Type: nftables.ChainTypeFilter, Hooknum: nftables.ChainHookOutput, Priority: nftables.ChainPriorityRaw})
		g.fill(early, 0)
	}
	for i := range 3 {
		c := g.conn.AddChain(&nftables.Chain{Name: fmt.Sprintf("sub%d", i), Table: g.Table})
		g.fill(c, i)
		g.subs = append(g.subs, c)
	}
	g.fill(out, 3)
	g.flush()
}

// fill gives a chain rules; it may jump to the first n chains.
func (g *generator) fill(c *nftables.Chain, n int) {
	for range g.IntN(4) {
		var e []expr.Any
		for range g.IntN(3) {
			e = append(e, g.condition()...)
		}
		if g.IntN(6) == 0 {
			e = append(e, &expr.Counter{})
		}
		e = append(e, g.verdict(n)...)
		g.log += fmt.Sprintf("%s:", c.Name)
		for _, x := range e {
			g.log += fmt.Sprintf(" %T%+v", x, x)
		}
		g.log += "\n"
		g.rule(c, e...)
	}
}

func (g *generator) condition() []expr.Any {
	port := []uint16{4791, 4792, 53}[g.IntN(3)]
	op := []expr.CmpOp{expr.CmpOpEq, expr.CmpOpNeq, expr.CmpOpLt, expr.CmpOpGte}[g.IntN(4)]
	switch g.IntN(15) {
	case 0, 1, 2:
		return dport(op, port)
	case 3:
		return l4proto([]byte{unix.IPPROTO_TCP, unix.IPPROTO_UDP}[g.IntN(2)])
	case 4:
		return ifname(expr.MetaKeyOIFNAME, []string{"lo", "eth0"}[g.IntN(2)])
	case 5:
		return from([]string{"127.0.0.0/8", "10.0.0.0/8", "127.0.0.1/32"}[g.IntN(3)])
	case 6:
		state := []uint32{expr.CtStateBitNEW, expr.CtStateBitESTABLISHED | expr.CtStateBitRELATED}[g.IntN(2)]
		return []expr.Any{
			&expr.Ct{Key: expr.CtKeySTATE, Register: 1},
			&expr.Bitwise{SourceRegister: 1, DestRegister: 1, Len: 4, Mask: binary.NativeEndian.AppendUint32(nil, state), Xor: make([]byte, 4)},
			&expr.Cmp{Op: expr.CmpOpNeq, Register: 1, Data: make([]byte, 4)},
		}
	case 7:
		return append(dport(expr.CmpOpGte, 0), &expr.Payload{DestRegister: 1, Base: expr.PayloadBaseTransportHeader, Offset: 2, Len: 2},
			&expr.Range{Op: []expr.CmpOp{expr.CmpOpEq, expr.CmpOpNeq}[g.IntN(2)], Register: 1, FromData: be(4000), ToData: be(4791)})
	case 8:
		return g.inSet(false)
	case 9:
		return g.inSet(true)
	case 10, 13, 14:
		return []expr.Any{&expr.Meta{Key: expr.MetaKeyMARK, Register: 1}, &expr.Cmp{Op: []expr.CmpOp{expr.CmpOpEq, expr.CmpOpNeq}[g.IntN(2)], Register: 1, Data: []byte{1, 0, 0, 0}}} // not known
	case 11:
		if g.Family != nftables.TableFamilyIPv4 { // iptables has no tables of both families
			return nil
		}
		return []expr.Any{&expr.Match{Name: "udp", Info: &xt.Udp{SrcPorts: [2]uint16{0, 65535}, DstPorts: [2]uint16{port, port + 1}, InvFlags: xt.UdpInvFlagset(g.IntN(2) * 2)}}}
	}
	return []expr.Any{&expr.Meta{Key: expr.MetaKeyOIF, Register: 1}, &expr.Cmp{Op: expr.CmpOpEq, Register: 1, Data: binary.NativeEndian.AppendUint32(nil, uint32(1+g.IntN(2)))}}
}

func be(n uint16) []byte { return binary.BigEndian.AppendUint16(nil, n) }

// inSet looks the port up in a set, of ports or of ranges of them.
func (g *generator) inSet(ranges bool) []expr.Any {
	g.sets++
	set := &nftables.Set{Table: g.Table, Name: fmt.Sprintf("s%d", g.sets), KeyType: nftables.TypeInetService, Interval: ranges}
	elements := []nftables.SetElement{{Key: be(53)}, {Key: be(4791)}}
	if ranges {
		elements = []nftables.SetElement{{Key: be(0), IntervalEnd: true}, {Key: be(50)}, {Key: be(60), IntervalEnd: true}, {Key: be(4792)}, {Key: be(5000), IntervalEnd: true}}
	}
	require.NoError(g.t, g.conn.AddSet(set, elements))
	return append(dport(expr.CmpOpGte, 0), &expr.Payload{DestRegister: 1, Base: expr.PayloadBaseTransportHeader, Offset: 2, Len: 2},
		&expr.Lookup{SourceRegister: 1, SetName: set.Name, SetID: set.ID, Invert: g.IntN(3) == 0})
}

// verdict is what a rule does; jumps go to one of the first n chains, so that they
// make no circle.
func (g *generator) verdict(n int) []expr.Any {
	n = min(n, len(g.subs))
	switch k := g.IntN(9); {
	case k < 3:
		return verdict(expr.VerdictDrop)
	case k < 5:
		return verdict(expr.VerdictAccept)
	case k == 5:
		return verdict(expr.VerdictReturn)
	case k == 6 && n > 0:
		return []expr.Any{&expr.Verdict{Kind: expr.VerdictJump, Chain: g.subs[g.IntN(n)].Name}}
	case k == 7 && n > 0:
		return []expr.Any{&expr.Verdict{Kind: expr.VerdictGoto, Chain: g.subs[g.IntN(n)].Name}}
	case k == 8 && n > 1:
		return g.verdictMap(n)
	}
	return nil
}

// verdictMap decides by the port.
func (g *generator) verdictMap(n int) []expr.Any {
	g.sets++
	set := &nftables.Set{Table: g.Table, Name: fmt.Sprintf("m%d", g.sets), KeyType: nftables.TypeInetService, DataType: nftables.TypeVerdict, IsMap: true}
	require.NoError(g.t, g.conn.AddSet(set, []nftables.SetElement{
		{Key: be(4791), VerdictData: &expr.Verdict{Kind: expr.VerdictJump, Chain: g.subs[g.IntN(n)].Name}},
		{Key: be(4792), VerdictData: &expr.Verdict{Kind: expr.VerdictDrop}},
	}))
	return append(dport(expr.CmpOpGte, 0), &expr.Payload{DestRegister: 1, Base: expr.PayloadBaseTransportHeader, Offset: 2, Len: 2},
		&expr.Lookup{SourceRegister: 1, SetName: set.Name, SetID: set.ID, IsDestRegSet: true, DestRegister: unix.NFT_REG_VERDICT})
}
