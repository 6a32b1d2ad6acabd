//go:build guest && linux

package interop

import (
	"bytes"
	"fmt"
	"net/netip"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rdmashim/rdmashim/uapi"
)

// perftest's exchange over TCP. In each step the client sends first and the
// server answers in kind:
//
//	version                  16 bytes, text
//	buffer and cache line    twice 4 bytes, big-endian
//	path MTU                 2 bytes, verbs' number as a digit
//	address                  108 bytes, hexadecimal fields, three times:
//	                         before the queue pairs are connected, and after
//	(the client works)
//	address                  108 bytes: it is done
//	results                  five times 8 bytes
//	address, then "done"     108 bytes; 5 bytes from each
const (
	perftestVersion = 16
	perftestAddress = 108
)

// perftestPeer is an address of the exchange.
type perftestPeer struct {
	qpn, psn, rkey uint32
	vaddr          uint64
	gid            netip.Addr
}

func (p perftestPeer) String() string {
	gid := p.gid.As16()
	var b strings.Builder
	fmt.Fprintf(&b, "%04x:%04x:%06x:%06x:%08x:%016x", 0, 1, p.qpn, p.psn, p.rkey, p.vaddr)
	for _, x := range gid {
		fmt.Fprintf(&b, ":%02x", x)
	}
	return b.String() + ":00000000:"
}

func parsePerftest(t *testing.T, text string) (p perftestPeer) {
	f := strings.Split(text, ":")
	require.GreaterOrEqual(t, len(f), 22, "%q", text)
	number := func(s string) uint64 {
		v, err := strconv.ParseUint(s, 16, 64)
		require.NoError(t, err, "%q", text)
		return v
	}
	p.qpn, p.psn, p.rkey = uint32(number(f[2])), uint32(number(f[3])), uint32(number(f[4]))
	p.vaddr = number(f[5])
	var gid [16]byte
	for i := range gid {
		gid[i] = byte(number(f[6+i]))
	}
	p.gid = netip.AddrFrom16(gid).Unmap()
	return p
}

// TestPerftest lets ib_write_bw and ib_read_bw of the distribution run on rxe
// against the soft RNIC, as server and as client.
func TestPerftest(t *testing.T) {
	for _, name := range []string{"ib_write_bw", "ib_read_bw"} {
		for _, r := range programRuns() {
			t.Run(name+" "+r.String(), func(t *testing.T) { perftest(t, name, r) })
		}
	}
}

// perftestSession is the test's side of a run.
type perftestSession struct {
	*talk
	e      *end
	client bool // the test is
	mine   perftestPeer
	peer   perftestPeer
}

const perftestIters, perftestSize = 16, 20000

func perftest(t *testing.T, name string, r programRun) {
	e := partner(t, r.family, r.mtu, perftestIters*perftestSize)
	endpoint := e.endpoint(t)
	s := &perftestSession{e: e, client: r.role == "server"}
	s.mine = perftestPeer{qpn: endpoint.QPN, psn: endpoint.PSN, rkey: e.region.RKey, vaddr: e.region.Addr + uint64(e.half+margin), gid: endpoint.Addr.Addr()}
	line := fmt.Sprintf("-F -d rxe0 -x %d -m %d -s %d -n %d -t 8", gidIndex(r.family.rxe), r.mtu, perftestSize, perftestIters)
	var p *program
	p, s.talk = startTalk(t, r.role, name, line)
	fill(e.target(), perftestSize)
	s.meet(t, r.mtu)
	if s.client {
		s.work(t, name, p)
	}
	s.inTurn(perftestAddress, s.mine.String) // the client is done
	if !s.client {
		s.check(t, name, p)
	}
	for range 5 {
		s.inTurn(8, nil)
	}
	s.inTurn(perftestAddress, s.mine.String)
	s.say("done", 5)
	text := p.ends(t)
	require.Contains(t, text, "#bytes", text)
}

// inTurn sends n bytes and receives as many, in the order of the roles; the
// received bytes are the answer. Without a text, and as server, it sends the
// received bytes back.
func (s *perftestSession) inTurn(n int, text func() string) (got string) {
	s.t.Helper()
	mine := ""
	if text != nil {
		mine = text()
	}
	if s.client {
		s.say(mine, n)
		return s.hear(n)
	}
	got = s.hear(n)
	if text == nil {
		mine = got
	}
	s.say(mine, n)
	return got
}

// meet goes through the exchange up to the connected queue pairs.
func (s *perftestSession) meet(t *testing.T, mtu int) {
	if s.client {
		s.inTurn(perftestVersion, func() string { return versionOfPerftest(t) })
	} else {
		s.inTurn(perftestVersion, nil) // as new as the program
	}
	number := func() string { return "\x00\x00\x10\x00" } // 4096
	s.inTurn(4, number)
	s.inTurn(4, func() string { return "\x00\x00\x00\x40" })
	code := map[int]string{1024: "3", 4096: "5"}[mtu]
	require.Equal(t, code, s.inTurn(2, func() string { return code }))
	s.peer = parsePerftest(t, s.inTurn(perftestAddress, s.mine.String))
	require.NoError(t, s.e.ctx.ConnectQP(s.e.qp, uapi.Endpoint{
		Addr: netip.AddrPortFrom(s.peer.gid, uapi.RoCEPort), QPN: s.peer.qpn, PSN: s.peer.psn, MTU: mtu, MaxRdAtomic: 1,
	}))
	if !s.client { // for the program to read
		copy(s.e.target()[margin:], pattern(perftestSize))
	}
	s.inTurn(perftestAddress, s.mine.String)
	s.inTurn(perftestAddress, s.mine.String)
}

var versionLine = regexp.MustCompile(`(?m)(\d+\.\d+)`)

// versionOfPerftest asks the program.
func versionOfPerftest(t *testing.T) string {
	cmd := exec.CommandContext(t.Context(), programDir+"/ib_write_bw", "--version")
	cmd.Env = append(cmd.Environ(), "LD_LIBRARY_PATH="+programDir+"/lib")
	out, _ := cmd.CombinedOutput() // its exit status is 1
	m := versionLine.FindSubmatch(out)
	require.NotNil(t, m, "%s", out)
	return string(m[1])
}

// work does the work of the program as the client: WRITEs into the server's
// memory, or READs from it. The server's memory is compared from outside.
func (s *perftestSession) work(t *testing.T, name string, p *program) {
	e := s.e
	for i := range perftestIters {
		wr := uapi.WR{ID: uapi.WRID(i), Flags: uapi.Signaled, RemoteAddr: s.peer.vaddr, RKey: s.peer.rkey}
		wc := uapi.WCOpWrite
		if name == "ib_write_bw" {
			copy(e.source(), pattern(perftestSize))
			wr.Op, wr.SGE = uapi.OpWrite, []uapi.SGE{{MR: e.mr, Length: perftestSize}}
		} else {
			wc = uapi.WCOpRead
			fill(e.target(), perftestSize)
			wr.Op, wr.SGE = uapi.OpRead, []uapi.SGE{{MR: e.mr, Offset: uint64(e.half + margin), Length: perftestSize}}
		}
		e.post(t, wr)
		e.success(t, wc)
		count(1, perftestSize)
	}
	theirs := p.memory(t, s.peer.vaddr, perftestSize)
	if name == "ib_write_bw" {
		require.True(t, bytes.Equal(e.source()[:perftestSize], theirs), "the program's memory is not what was written to it")
	} else {
		holds(t, "what was read from the program", e.target(), theirs)
	}
}

// check compares what the program did as the client. Its local buffer lies
// right before the one whose address it told.
func (s *perftestSession) check(t *testing.T, name string, p *program) {
	theirs := p.memory(t, s.peer.vaddr-perftestSize, perftestSize)
	holds(t, name+" of the program", s.e.target(), theirs)
	require.False(t, bytes.Equal(theirs, bytes.Repeat(theirs[:1], perftestSize)), "nothing was moved")
	count(perftestIters, perftestIters*perftestSize)
}
