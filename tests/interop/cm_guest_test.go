//go:build guest && linux

package interop

import (
	"context"
	"encoding/binary"
	"fmt"
	"net/netip"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rdmashim/rdmashim/kshim/abi"
	"github.com/rdmashim/rdmashim/kshim/host"
	"github.com/rdmashim/rdmashim/kshim/rdmacm"
	"github.com/rdmashim/rdmashim/kshim/verbs"
	"github.com/rdmashim/rdmashim/rnic/link"
	"github.com/rdmashim/rdmashim/tests/amount"
	"github.com/rdmashim/rdmashim/tests/must"
)

// cmEnd is this side of a connection: kshim/rdmacm and kshim/verbs.
type cmEnd struct {
	ch   *rdmacm.Channel
	dev  *verbs.Context
	pd   *verbs.PD
	cq   *verbs.CQ
	qp   *verbs.QP
	page []byte
	mr   *verbs.MR
}

// cmSide is the end that talks to a C program, which is always on rxe: rxe
// itself, or the soft RNIC over the wire, which loses packets.
type cmSide struct {
	name string
	soft bool
}

var cmSides = []cmSide{{name: "rxe"}, {name: "soft", soft: true}}

// addr is the side's address.
func (s cmSide) addr(f family) netip.Addr {
	if s.soft {
		return f.softAddr(7)
	}
	return f.rxe
}

// newCMEnd makes this side.
func newCMEnd(t *testing.T, f family, s cmSide) *cmEnd {
	if s.soft {
		return cmProgram(t, softKernel(t, s.addr(f), link.Faults{Loss: 0.05, Seed: 5}), "soft0")
	}
	return cmProgram(t, must.Get(host.New(host.Options{}))(t), "rxe0")
}

func (e *cmEnd) completion(t *testing.T) verbs.WC {
	ctx := wait(t)
	var wc [1]verbs.WC
	must.Get(e.cq.Wait(ctx, wc[:]))(t)
	require.Equal(t, abi.WCSuccess, wc[0].Status)
	return wc[0]
}

func (e *cmEnd) post(t *testing.T, op abi.WROpcode, n int, imm uint32, at []byte) {
	_, err := e.qp.Post([]verbs.SendWR{{Opcode: op, Flags: abi.SendSignaled, Imm: imm,
		RemoteAddr: binary.BigEndian.Uint64(at), RKey: binary.BigEndian.Uint32(at[8:]),
		SGE: []verbs.SGE{{Addr: e.mr.Addr(), Length: uint32(n), LKey: e.mr.LKey()}}}})
	require.NoError(t, err)
	e.completion(t)
}

var cmParam = rdmacm.ConnParam{ResponderResources: 1, InitiatorDepth: 1, RetryCount: 7, RNRRetryCount: 7}

// startPeer starts the peer in C.
func startPeer(t *testing.T, args ...string) *program { return startCompiled(t, "cmpeer", args...) }

// startCompiled starts a program that was compiled for these tests.
func startCompiled(t *testing.T, name string, args ...string) *program {
	compiled(t)
	return start(t, name, args...)
}

// compiled skips a test whose programs or libraries the host could not build;
// with CI=true the host fails instead (tests/guest).
func compiled(t *testing.T) {
	if why := os.Getenv("INTEROP_NO_COMPILED"); why != "" {
		t.Skip("what is compiled could not be built on the host: ", why)
	}
}

// TestCMRefuses: librdmacm's side and ours refuse each other, and what each
// says arrives. What they do once they are connected, the tool's samples do
// (TestTool).
func TestCMRefuses(t *testing.T) {
	for i, f := range families {
		for j, s := range cmSides {
			if amount.Part(i+j, 2) {
				t.Run(fmt.Sprint(f.name, " C client ", s.name, " server"), func(t *testing.T) { cmServe(t, f, s) })
				t.Run(fmt.Sprint(f.name, " C server ", s.name, " client"), func(t *testing.T) { cmCall(t, f, s) })
			}
		}
	}
}

// cmServe is our side as the server.
func cmServe(t *testing.T, f family, s cmSide) {
	e := newCMEnd(t, f, s)
	l := must.Get(e.ch.Listen(netip.AddrPortFrom(s.addr(f), 0), 1, rdmacm.Options{}))(t)
	defer l.Close()
	p := startPeer(t, "client", "reject", s.addr(f).String(), strconv.Itoa(int(l.Addr().Port())))
	r := must.Get(l.Accept(wait(t)))(t)
	defer r.Destroy()
	require.True(t, strings.HasPrefix(string(r.Peer.Private), "hello from C\x00"))
	require.NoError(t, r.Reject(0, []byte("Go says no")))
	require.Contains(t, p.ends(t), "rejected 28 'Go says no'")
}

var cmPort = 7470

// call connects to a program that listens.
func (e *cmEnd) call(ctx context.Context, to netip.AddrPort, p rdmacm.ConnParam) (*rdmacm.ID, error) {
	id, err := e.ch.Resolve(ctx, netip.AddrPort{}, to, rdmacm.Options{})
	if err == nil {
		_, err = id.Connect(ctx, e.qp, p)
	}
	return id, err
}

// cmCall is our side as the client.
func cmCall(t *testing.T, f family, s cmSide) {
	const refusal = "C says no"
	e := newCMEnd(t, f, s)
	cmPort++ // one of its own: the last one's program may still be ending
	p := startPeer(t, "server", "reject", f.rxe.String(), strconv.Itoa(cmPort))
	p.says(t, "listening ") // a request before that is refused by the kernel, and its repeat by the program
	param := cmParam
	param.Private = []byte("hello from Go")
	id, err := e.call(wait(t), netip.AddrPortFrom(f.rxe, uint16(cmPort)), param)
	require.NotNil(t, id, "%v", err)
	defer id.Destroy()
	var r *rdmacm.RejectedError
	require.ErrorAs(t, err, &r)
	require.Equal(t, abi.UCMRejConsumerDefined, r.Reason)
	require.Equal(t, refusal, string(r.Private[:len(refusal)]))
	require.Contains(t, p.ends(t), "request 'hello from Go'")
}
