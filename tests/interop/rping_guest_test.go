//go:build guest && linux

package interop

import (
	"encoding/binary"
	"fmt"
	"net/netip"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rdmashim/rdmashim/kshim/abi"
	"github.com/rdmashim/rdmashim/kshim/rdmacm"
	"github.com/rdmashim/rdmashim/kshim/verbs"
	"github.com/rdmashim/rdmashim/tests/must"
)

// The page of our end in a talk with rping: the received message, the sent one,
// and the data.
const (
	pingRecv = 0
	pingSend = 64
	pingData = 1024
	pingSize = 64 // rping's default

	pingInfo = 16 // struct rping_rdma_info: address, key and length, big-endian
)

func (e *cmEnd) pingReceive(t *testing.T) {
	must.Get(e.qp.PostRecv([]verbs.RecvWR{{ID: 1, SGE: []verbs.SGE{{Addr: e.mr.Addr() + pingRecv, Length: pingInfo, LKey: e.mr.LKey()}}}}))(t)
}

// pingWork posts a request and takes completions until it and, if hears is set,
// a receive have completed. They may come in either order.
func (e *cmEnd) pingWork(t *testing.T, wr *verbs.SendWR, hears bool) {
	left := 0
	if wr != nil {
		left++
		wr.Flags = abi.SendSignaled
		must.Get(e.qp.Post([]verbs.SendWR{*wr}))(t)
	}
	if hears {
		left++
	}
	for range left {
		e.completion(t)
	}
}

func (e *cmEnd) pingSay(info []byte) *verbs.SendWR {
	copy(e.page[pingSend:], info)
	return &verbs.SendWR{Opcode: abi.WRSend, SGE: []verbs.SGE{{Addr: e.mr.Addr() + pingSend, Length: pingInfo, LKey: e.mr.LKey()}}}
}

// pingMove reads what the peer has told of, or writes there.
func (e *cmEnd) pingMove(op abi.WROpcode) *verbs.SendWR {
	info := e.page[pingRecv:]
	return &verbs.SendWR{Opcode: op, RemoteAddr: binary.BigEndian.Uint64(info), RKey: binary.BigEndian.Uint32(info[8:]),
		SGE: []verbs.SGE{{Addr: e.mr.Addr() + pingData, Length: binary.BigEndian.Uint32(info[12:]), LKey: e.mr.LKey()}}}
}

const pings, lastPing = 5, "ping data: rdma-ping-4: "

// TestCMRping: the distribution's rping, as client and as server, verifies what
// it gets back.
func TestCMRping(t *testing.T) {
	for _, f := range families {
		for _, s := range cmSides {
			t.Run(f.name+" C client "+s.name+" server", func(t *testing.T) { pingServe(t, f, s) })
			t.Run(f.name+" C server "+s.name+" client", func(t *testing.T) { pingCall(t, f, s) })
		}
	}
}

// pingServe reads what rping has, and writes it back.
func pingServe(t *testing.T, f family, s cmSide) {
	e := newCMEnd(t, f, s)
	ctx := wait(t)
	l := must.Get(e.ch.Listen(netip.AddrPortFrom(s.addr(f), 0), 1, rdmacm.Options{}))(t)
	defer l.Close()
	p := start(t, "rping", "-c", "-v", "-V", "-C", strconv.Itoa(pings), "-a", s.addr(f).String(), "-p", strconv.Itoa(int(l.Addr().Port())))
	r := must.Get(l.Accept(ctx))(t)
	defer r.Destroy()
	require.NoError(t, r.Init(e.qp))
	e.pingReceive(t)
	require.NoError(t, r.Accept(ctx, e.qp, cmParam))
	for range pings {
		e.pingWork(t, nil, true) // where the data is
		e.pingReceive(t)
		require.EqualValues(t, pingSize, binary.BigEndian.Uint32(e.page[pingRecv+12:]))
		e.pingWork(t, e.pingMove(abi.WRRDMARead), false)
		require.True(t, strings.HasPrefix(string(e.page[pingData:]), "rdma-ping-"), "%q", e.page[pingData:pingData+pingSize])
		e.pingWork(t, e.pingSay(nil), true) // go on; where it goes
		e.pingReceive(t)
		e.pingWork(t, e.pingMove(abi.WRRDMAWrite), false)
		e.pingWork(t, e.pingSay(nil), false)
	}
	<-r.Context().Done()
	out := p.endsAfter(t, lastPing)
	require.Equal(t, pings, strings.Count(out, "ping data: rdma-ping-"), "%s", out)
}

// pingCall tells rping where data is, and where it goes back to.
func pingCall(t *testing.T, f family, s cmSide) {
	e := newCMEnd(t, f, s)
	ctx := wait(t)
	cmPort++
	p := start(t, "rping", "-s", "-v", "-C", strconv.Itoa(pings), "-a", f.rxe.String(), "-p", strconv.Itoa(cmPort))
	id, _, err := e.call(ctx, netip.AddrPortFrom(f.rxe, uint16(cmPort)), cmParam)
	require.NoError(t, err)
	defer id.Destroy()
	where := func(off int) []byte {
		info := binary.BigEndian.AppendUint64(nil, e.mr.Addr()+uint64(off))
		return binary.BigEndian.AppendUint32(binary.BigEndian.AppendUint32(info, e.mr.RKey()), pingSize)
	}
	const back = pingData + 1024
	for i := range pings {
		ping := fmt.Sprintf("rdma-ping-%d: from Go", i)
		clear(e.page[pingData:])
		copy(e.page[pingData:], ping)
		e.pingReceive(t)
		e.pingWork(t, e.pingSay(where(pingData)), true)
		e.pingReceive(t)
		e.pingWork(t, e.pingSay(where(back)), true)
		require.Equal(t, e.page[pingData:pingData+pingSize], e.page[back:back+pingSize])
	}
	require.NoError(t, id.Disconnect())
	<-id.Context().Done()
	out := p.endsAfter(t, "server DISCONNECT EVENT...")
	require.Equal(t, pings, strings.Count(out, "ping data: rdma-ping-"), "%s", out)
}
