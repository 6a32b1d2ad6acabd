package uapi_test

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rdmashim/rdmashim/tests/must"
	"github.com/rdmashim/rdmashim/uapi"
	"github.com/rdmashim/rdmashim/uapi/uapitest"
)

// sentences are those of the founding document of this API
// (testdata/rdma-api.txt), by the tests that hold them. TestFoundingDocument
// checks that none is missing.
var sentences = []struct {
	texts []string
	test  func(t *testing.T, x, y *uapitest.End)
}{
	// Memory regions.
	{[]string{
		"Register a memory region for RDMA operations.", "Post an RDMA WRITE operation.",
		"Completion status", "Operation completed successfully",
	}, func(t *testing.T, x, y *uapitest.End) {
		mr, _ := mustMR(t, x.Device, []byte("registered"), 0)
		x.Must(x.PostWrite(x.QP, mr, 0, x.Peer.Addr, x.Peer.RKey, 10))
		wc := x.Next(1)[0]
		require.Equal(t, "SUCCESS (completed successfully)", wc.Status.String())
		require.Equal(t, uapi.WCOpWrite, wc.Opcode)
		require.Equal(t, "registered", string(y.Buf[:10]))
	}},
	{[]string{"Starting virtual address of memory region"}, func(t *testing.T, x, y *uapitest.End) {
		// The region begins at the slice's first byte: offset 0 is that byte.
		buf := make([]byte, 100)
		_, info := mustMR(t, x.Device, buf[10:20], localWrite|remoteWrite)
		copy(y.Buf, "0123456789")
		y.Must(y.PostWrite(y.QP, y.MR, 0, info.Addr, info.RKey, 10))
		y.Next(1)
		require.Equal(t, "0123456789", string(buf[10:20]))
		require.Equal(t, make([]byte, 10), buf[:10])
	}},
	{[]string{"Size of memory region in bytes"}, func(t *testing.T, x, y *uapitest.End) {
		_, info := mustMR(t, x.Device, make([]byte, 4097), localWrite|remoteWrite)
		require.Equal(t, uint64(4097), info.Length)
		y.Must(y.PostWrite(y.QP, y.MR, 0, info.Addr+4096, info.RKey, 2))
		require.Equal(t, uapi.WCRemAccessErr, y.NextUnchecked(1)[0].Status, "one byte too far")
	}},
	{[]string{"Bitwise OR of:", "Allow remote writes", "Allow remote reads", "Remote access error"}, func(t *testing.T, x, y *uapitest.End) {
		for _, access := range []uapi.Access{localWrite | remoteWrite | remoteRead, localWrite | remoteWrite, localWrite | remoteRead} {
			_, info := mustMR(t, y.Device, make([]byte, 8), access)
			require.Equal(t, access, info.Access)
			for op, right := range map[uapi.Op]uapi.Access{uapi.OpWrite: remoteWrite, uapi.OpRead: remoteRead} {
				x, _ := uapitest.Connect(t, x.Device, y.Device)
				must.Get(x.Post(x.QP, []uapi.WR{{Op: op, Flags: uapi.Signaled, SGE: []uapi.SGE{{MR: x.MR, Length: 8}}, RemoteAddr: info.Addr, RKey: info.RKey}}))(t)
				require.Equal(t, access&right == 0, x.NextUnchecked(1)[0].Status == uapi.WCRemAccessErr, "%v with %v", op, access)
			}
		}
		require.Equal(t, 10, int(uapi.WCRemAccessErr))
		require.Contains(t, uapi.WCRemAccessErr.String(), "REM_ACCESS_ERR")
	}},
	{[]string{"Allow local writes", "Local protection error"}, func(t *testing.T, x, y *uapitest.End) {
		allowed, _ := mustMR(t, x.Device, make([]byte, 8), localWrite)
		x.Must(x.PostRead(x.QP, allowed, 0, x.Peer.Addr, x.Peer.RKey, 8))
		x.Next(1)
		forbidden, _ := mustMR(t, x.Device, make([]byte, 8), remoteRead)
		x.Must(x.PostRead(x.QP, forbidden, 0, x.Peer.Addr, x.Peer.RKey, 8))
		require.Equal(t, uapi.WCLocProtErr, x.NextUnchecked(1)[0].Status)
		require.Equal(t, 4, int(uapi.WCLocProtErr))
		require.Contains(t, uapi.WCLocProtErr.String(), "LOC_PROT_ERR")
	}},
	{[]string{"Insufficient permissions"}, func(t *testing.T, x, y *uapitest.End) {
		_, info := mustMR(t, y.Device, make([]byte, 8), localWrite)
		x.Must(x.FetchAdd(x.QP, piece(x.MR, 0, 8), uapi.Region{Addr: info.Addr, Length: 8, RKey: info.RKey}, 1))
		require.Equal(t, uapi.WCRemAccessErr, x.NextUnchecked(1)[0].Status)
		_, err := x.RegMR(make([]byte, 8), remoteWrite)
		require.ErrorIs(t, err, syscall.EINVAL, "remote writing needs local writing")
	}},
	{[]string{"Deregister a previously registered memory region.", "Memory region not registered"}, func(t *testing.T, x, y *uapitest.End) {
		mr, info := mustMR(t, y.Device, make([]byte, 8), localWrite|remoteWrite)
		x.Must(x.PostWrite(x.QP, x.MR, 0, info.Addr, info.RKey, 8))
		x.Next(1)
		require.NoError(t, y.DeregMR(mr))
		_, err := y.PostSend(y.QP, mr, 1)
		require.ErrorIs(t, err, syscall.EBADF)
		x.Must(x.PostWrite(x.QP, x.MR, 0, info.Addr, info.RKey, 8))
		require.Equal(t, uapi.WCRemAccessErr, x.NextUnchecked(1)[0].Status)
	}},
	{[]string{"For best performance, align memory regions to page boundaries (4096 bytes)"}, func(t *testing.T, x, y *uapitest.End) {
		mem := must.Get(uapi.Alloc(100))(t)
		mr, info := mustMR(t, x.Device, mem, localWrite)
		require.Zero(t, info.Addr%4096)
		require.ErrorIs(t, uapi.Free(mem), syscall.EBUSY)
		require.NoError(t, x.DeregMR(mr))
		require.NoError(t, uapi.Free(mem))
		_, info = mustMR(t, x.Device, make([]byte, 100)[1:], localWrite)
		require.NotZero(t, info.Addr, "and any other memory does, too")
	}},

	// Queue pairs.
	{[]string{"Create a queue pair for RDMA communication.", "Queue pair to use", "Queue pair to poll"}, func(t *testing.T, x, y *uapitest.End) {
		qa, qb := mustQP(t, x.Device, uapi.QPConfig{SendDepth: 1}), mustQP(t, y.Device, uapi.QPConfig{})
		_, err := x.PostWrite(qa, x.MR, 0, x.Peer.Addr, x.Peer.RKey, 8)
		require.ErrorIs(t, err, syscall.EINVAL, "it is not connected")
		connectPair(t, x.Device, qa, y.Device, qb)
		x.Must(x.PostWrite(qa, x.MR, 0, x.Peer.Addr, x.Peer.RKey, 8))
		wc := next(t, x.Device, qa)
		require.NoError(t, wc.Err())
		require.Equal(t, qa, wc.QP)
		n := must.Get(x.PollCQ(x.QP, make([]uapi.WC, 1)))(t)
		require.Zero(t, n, "of the other one")
	}},
	{[]string{"Number of entries in send completion queue"}, func(t *testing.T, x, y *uapitest.End) {
		qa, qb := mustQP(t, x.Device, uapi.QPConfig{SendDepth: 3}), mustQP(t, y.Device, uapi.QPConfig{})
		connectPair(t, x.Device, qa, y.Device, qb)
		for range 3 {
			x.Must(x.PostWrite(qa, x.MR, 0, x.Peer.Addr, x.Peer.RKey, 1))
		}
		_, err := x.PostWrite(qa, x.MR, 0, x.Peer.Addr, x.Peer.RKey, 1)
		require.ErrorIs(t, err, syscall.ENOMEM, "exactly three")
		require.NoError(t, next(t, x.Device, qa).Err())
		x.Must(x.PostWrite(qa, x.MR, 0, x.Peer.Addr, x.Peer.RKey, 1))
		for range 3 {
			require.NoError(t, next(t, x.Device, qa).Err())
		}
	}},
	{[]string{"Number of entries in receive completion queue", "Queue full"}, func(t *testing.T, x, y *uapitest.End) {
		for range uapitest.Depth {
			x.Must(x.PostRecv(x.QP, x.MR, 0, 1))
		}
		_, err := x.PostRecv(x.QP, x.MR, 0, 1)
		require.ErrorIs(t, err, syscall.ENOMEM, "exactly so many")
	}},
	{[]string{"Destroy a queue pair."}, func(t *testing.T, x, y *uapitest.End) {
		qp := must.Get(x.CreateQP(1, 1))(t)
		require.NoError(t, x.DestroyQP(qp))
		_, err := x.QueryQP(qp)
		require.ErrorIs(t, err, syscall.EBADF)
		n, err := x.PollCQ(qp, make([]uapi.WC, 1))
		require.ErrorIs(t, err, syscall.EBADF)
		require.Equal(t, -1, n)
	}},
	{[]string{"A process can create multiple queue pairs for parallel operations"}, func(t *testing.T, x, y *uapitest.End) {
		const pairs = 8
		for i := range pairs {
			t.Run("", func(t *testing.T) {
				t.Parallel()
				qa, qb := mustQP(t, x.Device, uapi.QPConfig{SendDepth: 8}), mustQP(t, y.Device, uapi.QPConfig{})
				connectPair(t, x.Device, qa, y.Device, qb)
				for range 8 {
					at := uint64(i) * 4096
					must.Get(x.PostWrite(qa, x.MR, at, x.Peer.Addr+at, x.Peer.RKey, 4096))(t)
				}
				for range 8 {
					require.NoError(t, next(t, x.Device, qa).Err())
				}
			})
		}
	}},

	// Requests.
	{[]string{"Offset within local memory region"}, func(t *testing.T, x, y *uapitest.End) {
		copy(x.Buf, "..here")
		x.Must(x.PostWrite(x.QP, x.MR, 2, x.Peer.Addr, x.Peer.RKey, 4))
		x.Next(1)
		require.Equal(t, "here", string(y.Buf[:4]))
		size := uint64(len(x.Buf))
		for _, c := range [][2]uint64{{size, 1}, {size - 1, 2}, {0, size + 1}, {1<<64 - 1, 2}, {2, 1<<64 - 1}} {
			_, err := x.PostWrite(x.QP, x.MR, c[0], x.Peer.Addr, x.Peer.RKey, c[1])
			require.ErrorIs(t, err, syscall.EINVAL, "offset %d length %d", c[0], c[1])
		}
	}},
	{[]string{
		"Remote virtual address", "Remote key for access validation", "Write to remote address 0x80000000",
	}, func(t *testing.T, x, y *uapitest.End) {
		copy(x.Buf, "there")
		x.Must(x.PostWrite(x.QP, x.MR, 0, x.Peer.Addr+100, x.Peer.RKey, 5))
		x.Next(1)
		require.Equal(t, "there", string(y.Buf[100:105]))
		for _, wrong := range []uapi.Region{
			{Addr: x.Peer.Addr - 1, RKey: x.Peer.RKey}, {Addr: x.Peer.Addr, RKey: x.Peer.RKey ^ 1},
			{Addr: 0x80000000, RKey: x.Peer.RKey}, // no program registered it; see also TestFoundingExample
		} {
			x, y := uapitest.Connect(t, x.Device, y.Device)
			x.Must(x.PostWrite(x.QP, x.MR, 0, wrong.Addr, wrong.RKey, 5))
			require.Equal(t, uapi.WCRemAccessErr, x.NextUnchecked(1)[0].Status, "%v", wrong)
			require.Equal(t, make([]byte, 5), y.Buf[:5])
		}
	}},
	{[]string{"Number of bytes to write", "Number of bytes transferred"}, func(t *testing.T, x, y *uapitest.End) {
		for i := range x.Buf {
			x.Buf[i] = 0xa5
		}
		x.Must(x.PostWrite(x.QP, x.MR, 0, x.Peer.Addr, x.Peer.RKey, 1000))
		x.Must(x.PostRead(x.QP, x.MR, 0, x.Peer.Addr, x.Peer.RKey, 600))
		wcs := x.Next(2)
		require.Equal(t, []uint64{1000, 600}, []uint64{wcs[0].ByteLen, wcs[1].ByteLen})
		require.Equal(t, x.Buf[:1000], y.Buf[:1000])
		require.Zero(t, y.Buf[1000])
	}},
	{[]string{
		"Post an RDMA SEND operation (message passing).", "Local memory region containing message",
		"RDMA operations are asynchronous - always poll for completions",
	}, func(t *testing.T, x, y *uapitest.End) {
		y.Must(y.PostRecv(y.QP, y.MR, 0, 100))
		n := must.Get(y.PollCQ(y.QP, make([]uapi.WC, 1)))(t)
		require.Zero(t, n, "the post returned before there was a message")
		mr, _ := mustMR(t, x.Device, []byte("message"), 0)
		x.Must(x.PostSend(x.QP, mr, 7))
		sent, received := x.Next(1)[0], y.Next(1)[0]
		require.Equal(t, uapi.WCOpSend, sent.Opcode)
		require.Equal(t, uapi.WCOpRecv, received.Opcode)
		require.EqualValues(t, x.QP, received.SrcQPN)
		require.Equal(t, "message", string(y.Buf[:received.ByteLen]))
	}},
	{[]string{"Message length in bytes"}, func(t *testing.T, x, y *uapitest.End) {
		for _, n := range []uint64{0, 1, 4096, 4097, uapitest.Size} {
			y.Must(y.PostRecv(y.QP, y.MR, 0, uapitest.Size))
			x.Must(x.PostSend(x.QP, x.MR, n))
			x.Next(1)
			require.Equal(t, n, y.Next(1)[0].ByteLen)
		}
		_, err := x.PostSend(x.QP, x.MR, uapitest.Size+1)
		require.ErrorIs(t, err, syscall.EINVAL)
	}},

	// Completions.
	{[]string{
		"Poll completion queue for completed operations.", "Array to store completion entries",
		"Maximum number of completions to retrieve", "Work request ID",
	}, func(t *testing.T, x, y *uapitest.End) {
		var wc [2]uapi.WC
		n := must.Get(x.PollCQ(x.QP, wc[:]))(t)
		require.Zero(t, n, "nothing was posted")
		var want, got []uapi.WRID
		for range 5 {
			want = append(want, x.Must(x.PostWrite(x.QP, x.MR, 0, x.Peer.Addr, x.Peer.RKey, 1)))
		}
		want = append(want, x.Must(x.PostWrite(x.QP, x.MR, 0, x.Peer.Addr, 0, 1))) // fails
		for len(got) < 6 {
			n := must.Get(x.PollCQ(x.QP, wc[:]))(t)
			require.LessOrEqual(t, n, 2)
			for _, c := range wc[:n] {
				got = append(got, c.WRID)
			}
		}
		require.Equal(t, want, got)
		n = must.Get(x.PollCQ(x.QP, wc[:]))(t)
		require.Zero(t, n, "a completion comes once")
	}},
	{[]string{"Operation type"}, func(t *testing.T, x, y *uapitest.End) {
		y.Must(y.PostRecv(y.QP, y.MR, 0, 8))
		y.Must(y.PostRecv(y.QP, y.MR, 0, 8))
		x.Must(x.PostWrite(x.QP, x.MR, 0, x.Peer.Addr, x.Peer.RKey, 1))
		x.Must(x.PostRead(x.QP, x.MR, 0, x.Peer.Addr, x.Peer.RKey, 1))
		x.Must(x.FetchAdd(x.QP, piece(x.MR, 0, 8), x.Peer, 1))
		x.Must(x.CompareSwap(x.QP, piece(x.MR, 0, 8), x.Peer, 1, 2))
		x.Must(x.PostSend(x.QP, x.MR, 1))
		x.Must(x.WriteImm(x.QP, piece(x.MR, 0, 1), x.Peer, 7))
		var ops []uapi.Opcode
		for _, wc := range append(x.Next(6), y.Next(2)...) {
			ops = append(ops, wc.Opcode)
		}
		require.Equal(t, []uapi.Opcode{uapi.WCOpWrite, uapi.WCOpRead, uapi.WCOpFetchAdd, uapi.WCOpCompareSwap, uapi.WCOpSend, uapi.WCOpWrite,
			uapi.WCOpRecv, uapi.WCOpRecvWriteImm}, ops)
	}},

	// Results and errors.
	{[]string{
		"Memory region handle (>=0) on success, -1 on error", "Queue pair number (>=0) on success, -1 on error",
		"Work request ID (>=0) on success, -1 on error", "Number of completions found (>=0), -1 on error",
		"0 on success, -1 on error", // of deregistering and destroying
		"All RDMA functions return -1 on error.",
	}, func(t *testing.T, x, y *uapitest.End) {
		mr, err := x.RegMR(make([]byte, 4096), localWrite|remoteWrite)
		require.NoError(t, err)
		require.GreaterOrEqual(t, mr, uapi.MR(0))
		require.NoError(t, x.DeregMR(mr))
		require.ErrorIs(t, x.DeregMR(mr), syscall.EBADF)
		for _, buf := range [][]byte{nil, {}} {
			mr, err = x.RegMR(buf, localWrite)
			require.ErrorIs(t, err, syscall.EINVAL)
			require.Equal(t, uapi.MR(-1), mr)
		}
		qp := must.Get(x.CreateQP(64, 64))(t)
		require.GreaterOrEqual(t, qp, uapi.QP(0))
		e := must.Get(x.LocalEndpoint(qp))(t)
		require.Equal(t, uint32(qp), e.QPN, "the handle is the number on the wire")
		require.NoError(t, x.DestroyQP(qp))
		require.ErrorIs(t, x.DestroyQP(qp), syscall.EBADF)
		for _, sizes := range [][2]int{{-1, 1}, {1, -1}, {1 << 30, 1}, {1, 1 << 30}} {
			qp, err := x.CreateQP(sizes[0], sizes[1])
			require.ErrorIs(t, err, syscall.EINVAL)
			require.Equal(t, uapi.QP(-1), qp)
		}
		for i := range uapi.WRID(10) {
			require.Equal(t, 2*i, x.Must(x.PostWrite(x.QP, x.MR, 0, x.Peer.Addr, x.Peer.RKey, 1)))
			require.Equal(t, 2*i+1, x.Must(x.PostRecv(x.QP, x.MR, 0, 1)))
		}
		x.Next(10)
		for _, post := range []func() (uapi.WRID, error){
			func() (uapi.WRID, error) { return x.PostSend(0, x.MR, 1) },
			func() (uapi.WRID, error) { return x.PostRecv(x.QP, 0, 0, 1) },
			func() (uapi.WRID, error) { return x.PostWrite(0, 0, 0, 0, 0, 0) },
		} {
			id, err := post()
			require.ErrorIs(t, err, syscall.EBADF)
			require.Equal(t, uapi.WRID(-1), id)
		}
		for _, wc := range [][]uapi.WC{nil, make([]uapi.WC, 10)} {
			n, err := x.PollCQ(0, wc)
			require.ErrorIs(t, err, syscall.EBADF)
			require.Equal(t, -1, n)
		}
	}},
	{[]string{
		"Handle returned from `rdma_reg_mr()`", "Local memory region handle", "Invalid memory region handle",
		"Queue pair number from `rdma_create_qp()`", "Invalid queue pair number",
		"Use `errno` (future enhancement) or check return values carefully.",
	}, func(t *testing.T, x, y *uapitest.End) {
		for _, mr := range []uapi.MR{0, -1, y.MR, 1 << 30} { // y's is another device's
			require.ErrorIs(t, x.DeregMR(mr), syscall.EBADF, "%d", mr)
			_, err := x.PostSend(x.QP, mr, 1)
			var errno syscall.Errno
			require.ErrorAs(t, err, &errno)
			require.Equal(t, syscall.EBADF, errno)
			require.ErrorContains(t, err, fmt.Sprintf("mr %d", mr))
			var op *uapi.OpError
			require.ErrorAs(t, err, &op)
			require.Equal(t, "PostSend", op.Op)
		}
		for _, qp := range []uapi.QP{0, -1, 1 << 24, 1 << 30, -1 << 31} {
			require.ErrorIs(t, x.DestroyQP(qp), syscall.EBADF, "%d", qp)
			_, err := x.PostSend(qp, x.MR, 1)
			require.ErrorIs(t, err, syscall.EBADF)
			require.ErrorContains(t, err, fmt.Sprintf("qp %d", qp))
		}
	}},
	{[]string{"General error"}, func(t *testing.T, x, y *uapitest.End) {
		// The soft RNIC has a more specific status for everything; the number
		// and name are the kernel's.
		require.Equal(t, 21, int(uapi.WCGeneralErr))
		require.Equal(t, "GENERAL_ERR (general error)", uapi.WCGeneralErr.String())
	}},
	{[]string{"Always deregister memory regions and destroy queue pairs before exit"}, func(t *testing.T, x, y *uapitest.End) {
		// OpenHandles lists the handles that a program forgets, and Close
		// destroys them.
		d := must.Get(uapi.Open("sim", uapi.OpenConfig{}))(t)
		must.Get(d.RegMR(make([]byte, 10), 0))(t)
		must.Get(d.CreateQP(1, 1))(t)
		left := d.OpenHandles()
		require.Len(t, left, 2)
		require.Contains(t, left[0], "mr ")
		require.Contains(t, left[0], "founding_test.go:")
		require.Contains(t, left[1], "qp ")
		require.NoError(t, d.Close())
		require.Empty(t, d.OpenHandles())
	}},
}

const (
	localWrite  = uapi.AccessLocalWrite
	remoteWrite = uapi.AccessRemoteWrite
	remoteRead  = uapi.AccessRemoteRead
)

func TestFoundingSentences(t *testing.T) {
	for _, s := range sentences {
		t.Run(s.texts[0], func(t *testing.T) {
			t.Parallel()
			eachDevice(t, func(t *testing.T, a, b *uapi.Device) {
				x, y := uapitest.Connect(t, a, b)
				s.test(t, x, y)
			})
		})
	}
}

// Every sentence of the document is in the table above.
func TestFoundingDocument(t *testing.T) {
	text := must.Get(os.ReadFile(filepath.Join("testdata", "rdma-api.txt")))(t)
	held := make(map[string]bool)
	for _, s := range sentences {
		for _, text := range s.texts {
			held[text] = true
		}
	}
	found := foundingSentences(string(text))
	require.Greater(t, len(found), 50)
	used := make(map[string]bool)
	for _, s := range found {
		require.True(t, held[s], "no test holds: %s", s)
		used[s] = true
	}
	for s := range held {
		require.True(t, used[s], "the document does not say: %s", s)
	}
}

var (
	foundingItem  = regexp.MustCompile("^\\s*-\\s+`[a-zA-Z_]+`: (.*)$")
	foundingField = regexp.MustCompile(`^\*\*(Description|Returns|Page Alignment|Synchronization|Cleanup|Multiple QPs)\*\*: (.*)$`)
	foundingNote  = regexp.MustCompile(`^\d+\. \*\*[A-Za-z ]+\*\*: (.*)$`)
	foundingError = regexp.MustCompile(`^- ([A-Z].*)$`)
	foundingWC    = regexp.MustCompile(`^    (?:int|uint64) [a-z_]+; +// (.*)$`)
)

// foundingSentences takes the statements out of the document: descriptions,
// parameters, results, fields, statuses, errors and notes. Its example
// programs are held by TestFoundingExample and the Examples.
func foundingSentences(text string) []string {
	var found []string
	code := false
	for line := range strings.SplitSeq(text, "\n") {
		if strings.HasPrefix(line, "```") {
			code = !code
			continue
		}
		if code {
			if m := foundingWC.FindStringSubmatch(line); m != nil {
				found = append(found, m[1])
			}
			if m := strings.TrimSpace(line); strings.HasPrefix(m, "// Write to remote") {
				found = append(found, strings.TrimPrefix(m, "// "))
			}
			continue
		}
		for _, form := range []*regexp.Regexp{foundingItem, foundingNote, foundingError} {
			if m := form.FindStringSubmatch(line); m != nil {
				found = append(found, m[1])
			}
		}
		if m := foundingField.FindStringSubmatch(line); m != nil {
			found = append(found, m[2])
		}
		if rest, ok := strings.CutPrefix(line, "All RDMA functions return -1 on error. "); ok {
			found = append(found, "All RDMA functions return -1 on error.", rest)
		}
	}
	return found
}
