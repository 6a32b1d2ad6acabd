package rdmanl

import (
	"encoding/binary"
	"fmt"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rdmashim/rdmashim/kshim/nldev"
	"github.com/rdmashim/rdmashim/netlinkmgr"
	"github.com/rdmashim/rdmashim/tests/must"
	"github.com/rdmashim/rdmashim/tests/netlinktest"
	"github.com/rdmashim/rdmashim/uapi"
)

// TestObjects: netlinkmgr, which reads the real kernel, finds what the program
// made.
func TestObjects(t *testing.T) {
	b := newBusy(t, uapi.QPConfig{Type: uapi.TypeUD, SendDepth: 4})
	b.connect(t)
	m, ctx := manager(t, b.Server), t.Context()
	devices := must.Get(m.Devices(ctx))(t)
	require.Len(t, devices, 1)
	d := devices[0]
	require.Equal(t, b.name, d.Name)
	again := must.Get(m.Device(ctx, d.Name))(t)
	require.Equal(t, d, again)
	ports := must.Get(m.Ports(ctx, d))(t)
	require.Len(t, ports, 1)
	require.True(t, ports[0].Active())
	file := must.Get(m.CharDev(ctx, d, "uverbs"))(t)
	require.Regexp(t, `^uverbs\d+$`, file.Name)
	must.Fail(m.CharDev(ctx, d, "umad"))(t, syscall.EOPNOTSUPP)

	qps := must.Get(m.QPs(ctx, d))(t)
	numbers := map[uint32]uint32{}
	for _, q := range qps {
		require.EqualValues(t, testPID, q.Owner.PID)
		numbers[q.LQPN] = *q.PDN
		require.Equal(t, q.Type.String() == "RC", q.RQPN != nil, "only what is connected has a peer")
	}
	require.Len(t, numbers, len(b.qps)+1)
	for _, qp := range b.qps {
		e := must.Get(b.device.LocalEndpoint(qp))(t)
		require.Contains(t, numbers, e.QPN)
	}
	pds := must.Get(m.PDs(ctx, d))(t)
	mrs := must.Get(m.MRs(ctx, d))(t)
	info := must.Get(b.device.QueryMR(b.mr))(t)
	i := slices.IndexFunc(mrs, func(r netlinkmgr.MR) bool { return *r.RKey == info.RKey })
	require.GreaterOrEqual(t, i, 0)
	require.EqualValues(t, 8192, mrs[i].Length)
	users := map[uint32]uint64{}
	for _, n := range numbers {
		users[n]++
	}
	for _, r := range mrs {
		users[*r.PDN]++
	}
	srqs := must.Get(m.SRQs(ctx, d))(t)
	require.Len(t, srqs, 1)
	users[*srqs[0].PDN]++
	shared := 0
	for _, run := range srqs[0].QPs {
		shared += max(1, int(run.Max)-int(run.Min)+1)
	}
	require.Equal(t, 2, shared)
	for _, pd := range pds {
		require.Equal(t, users[*pd.PDN], pd.Users)
	}
	cqs := must.Get(m.CQs(ctx, d))(t)
	ends := uint64(0)
	for _, q := range cqs {
		ends += q.Users
	}
	require.EqualValues(t, 2*len(numbers), ends, "each queue pair uses one for each direction")
	contexts := must.Get(m.Contexts(ctx, d))(t)
	require.Len(t, contexts, 1)
	ids := must.Get(m.CMIDs(ctx, d))(t)
	var states []string
	for _, id := range ids {
		states = append(states, id.State.String())
		if id.LQPN != nil {
			require.Contains(t, numbers, *id.LQPN)
		}
	}
	require.ElementsMatch(t, []string{"LISTEN", "CONNECT"}, states)

	counts := must.Get(m.Summary(ctx, d))(t)
	got := map[string]int{}
	for _, c := range counts {
		got[c.Name] = int(c.Value)
	}
	require.Equal(t, map[string]int{"pd": len(pds), "cq": len(cqs), "qp": len(qps), "cm_id": 2, "mr": len(mrs), "ctx": 1, "srq": 1}, got)
}

// tables are the attributes that hold tables of objects.
var tables = []string{"RES_QP", "RES_CQ", "RES_MR", "RES_PD", "RES_CM_ID", "RES_CTX", "RES_SUMMARY"}

// shapes lists the attributes of an answer in their order, with flags and
// lengths but for names, a line for it and one for each entry of a table.
// Objects of the kernel's own are left out.
func shapes(t *testing.T, b []byte) (list []string) {
	var top strings.Builder
	for len(b) > 0 {
		n, typ := int(binary.NativeEndian.Uint16(b)), binary.NativeEndian.Uint16(b[2:])
		v := b[4:n]
		b = b[min((n+3)&^3, len(b)):]
		table, name := false, false
		for _, x := range tables {
			table = table || typ == number(x)
		}
		for _, x := range []string{"DEV_NAME", "NDEV_NAME", "RES_SUMMARY_ENTRY_NAME"} {
			name = name || typ == number(x)
		}
		switch {
		case typ == number("RES_KERN_NAME"):
			return nil
		case table:
			fmt.Fprintf(&top, "%d ", typ)
			for len(v) > 0 {
				n := int(binary.NativeEndian.Uint16(v))
				for _, entry := range shapes(t, v[4:n]) {
					list = append(list, fmt.Sprintf("%d: %s", binary.NativeEndian.Uint16(v[2:]), entry))
				}
				v = v[min((n+3)&^3, len(v)):]
			}
		case name:
			fmt.Fprintf(&top, "%d ", typ)
		default:
			fmt.Fprintf(&top, "%d:%d ", typ, len(v))
		}
	}
	return append(list, top.String())
}

// number is an attribute's.
func number(name string) uint16 { return binary.NativeEndian.Uint16(nldev.Encode(name, "")[2:]) }

// TestLikeLinux: each answer has the attributes that Linux's has, in the same
// order, and those that tell nothing of the device are the same.
func TestLikeLinux(t *testing.T) {
	recorded := must.Get(netlinktest.Recorded())(t)
	b := newBusy(t)
	b.connect(t)
	index := uint32(b.known(t).Index)
	compared := 0
	for key, answers := range recorded.Answers {
		var command uint16
		var dump bool
		var attrs []byte
		_, err := fmt.Sscanf(key+" ", "%d %t %x", &command, &dump, &attrs)
		require.True(t, err == nil || len(attrs) == 0, "%q: %v", key, err)
		if command == nldev.Command("STAT_GET") {
			continue
		}
		if len(attrs) >= 8 && binary.NativeEndian.Uint16(attrs[2:]) == number("DEV_INDEX") {
			attrs = append(nldev.Encode("DEV_INDEX", index), attrs[8:]...)
		}
		flags := uint16(flagRequest | flagAck)
		if dump {
			flags |= flagDump
		}
		got, err := exchange(t, b.Server, nldevClient<<10|command, flags, attrs)
		require.NoError(t, err, key)
		require.NotEmpty(t, got)
		switch command {
		case nldev.Command("SYS_GET"):
			require.Equal(t, answers, got)
		case nldev.Command("GET_CHARDEV"):
			require.Equal(t, shapes(t, answers[0]), shapes(t, got[0]))
		default:
			var want, have []string
			for _, a := range answers {
				want = append(want, shapes(t, a)...)
			}
			for _, a := range got {
				have = append(have, shapes(t, a)...)
			}
			if command == nldev.Command("PORT_GET") { // no network device is behind this one
				want[0] = strings.TrimSuffix(want[0], fmt.Sprintf("%d:4 %d ", number("NDEV_INDEX"), number("NDEV_NAME")))
			}
			require.Subset(t, want, have, key)
		}
		compared++
	}
	require.Equal(t, len(recorded.Answers)-1, compared)
}

// TestRefused: errors are Linux's.
func TestRefused(t *testing.T) {
	b := newBusy(t)
	index := uint32(b.known(t).Index)
	dev := nldev.Encode("DEV_INDEX", index)
	for _, r := range netlinktest.Refusals(index) {
		_, err := exchange(t, b.Server, r.Type(), r.Flags(), r.Attrs)
		if r.Errno == 0 {
			require.NoError(t, err, r.Name)
		} else {
			require.Equal(t, r.Errno, err, r.Name)
		}
	}
	for name, typ := range map[string]uint16{
		"another client": 4<<10 | 1, "a number above all": nldevClient<<10 | 1023, "what changes something": nldevType("DELLINK"),
	} {
		_, err := exchange(t, b.Server, typ, flagRequest|flagAck, dev)
		require.Equal(t, syscall.EINVAL, err, name)
	}

	e := must.Get(b.device.LocalEndpoint(b.qps[0]))(t)
	got, err := exchange(t, b.Server, nldevType("RES_QP_GET"), flagRequest|flagAck, append(dev, nldev.Encode("PORT_INDEX", uint32(1), "RES_LQPN", e.QPN)...))
	require.NoError(t, err)
	require.Len(t, got, 1)

	require.Empty(t, b.Answer(testPort, request(nldevType("GET"), 0, dev)), "no request, and no wish to know")
	require.Len(t, b.Answer(testPort, request(nldevType("GET"), flagAck, dev)), 1)
	require.Len(t, b.Answer(testPort, request(2, flagRequest|flagAck, nil)), 1, "a control message")
	two := append(request(nldevType("GET"), flagRequest, dev), request(nldevType("SYS_GET"), flagRequest, nil)...)
	require.Len(t, b.Answer(testPort, two), 2)
}

// hostile answers arbitrary bytes: every message of the answer is whole.
func hostile(t *testing.T, s *Server, sent []byte) {
	for _, b := range s.Answer(testPort, sent) {
		m, rest, ok := next(b)
		require.True(t, ok && len(rest) == 0)
		if m.typ == typeError || m.typ == typeDone {
			require.LessOrEqual(t, int32(binary.NativeEndian.Uint32(m.payload())), int32(0))
		}
	}
}

// seeds are a request of each command.
func seeds(index uint32) (list [][]byte) {
	dev := nldev.Encode("DEV_INDEX", index, "PORT_INDEX", uint32(1), "CHARDEV_TYPE", "uverbs", "RES_LQPN", uint32(17), "RES_PDN", uint32(0))
	for op := range commands() {
		list = append(list, request(nldevClient<<10|op, flagRequest, dev), request(nldevClient<<10|op, flagRequest|flagAck|flagDump, dev[:8]))
	}
	return list
}

// TestTruncated: every beginning of a request, also with a header that says so,
// is answered or passed over.
func TestTruncated(t *testing.T) {
	b := newBusy(t)
	for _, whole := range seeds(uint32(b.known(t).Index)) {
		for n := range whole {
			short := slices.Clone(whole[:n])
			hostile(t, b.Server, short)
			if n >= 4 {
				binary.NativeEndian.PutUint32(short, uint32(n))
				hostile(t, b.Server, short)
			}
		}
	}
}

func FuzzRequest(f *testing.F) {
	for _, b := range seeds(0) {
		f.Add(b)
	}
	s := newBusy(f).Server
	f.Fuzz(func(t *testing.T, sent []byte) { hostile(t, s, sent) })
}
