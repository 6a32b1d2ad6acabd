package uapi

import (
	"bytes"
	"context"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rdmashim/rdmashim/kshim"
	"github.com/rdmashim/rdmashim/tests/must"
)

// demo works as a program does: it connects two devices, moves a megabyte with
// WRITE, reads it back, sends a message with an immediate, does an atomic, and
// tidies up.
func demo(t *testing.T, a, b *Device) {
	const total, piece = 1 << 20, 64 << 10
	ctx := context.Background()
	source := bytes.Repeat([]byte("rdmashim"), total/8)
	back, target := make([]byte, total), make([]byte, total)
	var mrs [3]MR
	for i, buf := range [][]byte{source, back, target} {
		d := a
		if i == 2 {
			d = b
		}
		mr := must.Get(d.RegMR(buf, AccessLocalWrite|AccessRemoteWrite|AccessRemoteRead|AccessRemoteAtomic))(t)
		mrs[i] = mr
		defer func() { require.NoError(t, d.DeregMR(mr)) }()
	}
	qa, qb := linked(t, a, b, QPConfig{SendDepth: 32, RecvDepth: 1})
	defer func() { require.NoError(t, a.DestroyQP(qa)) }()
	defer func() { require.NoError(t, b.DestroyQP(qb)) }()
	peer := must.Get(b.QueryMR(mrs[2]))(t)
	must.Get(b.PostRecv(qb, mrs[2], 0, piece))(t)

	wc := make([]WC, 32)
	finish := func(d *Device, qp QP, n int) {
		for n > 0 {
			got := must.Get(d.WaitCQ(ctx, qp, wc))(t)
			for _, c := range wc[:got] {
				require.NoError(t, c.Err())
			}
			n -= got
		}
	}
	for at := uint64(0); at < total; at += piece {
		must.Get(a.PostWrite(qa, mrs[0], at, peer.Addr+at, peer.RKey, piece))(t)
	}
	finish(a, qa, total/piece)
	for at := uint64(0); at < total; at += piece {
		must.Get(a.PostRead(qa, mrs[1], at, peer.Addr+at, peer.RKey, piece))(t)
	}
	finish(a, qa, total/piece)
	require.True(t, bytes.Equal(source, back))
	must.Get(a.PostSendImm(qa, mrs[0], 100, 7))(t)
	must.Get(a.FetchAdd(qa, SGE{MR: mrs[1], Length: 8}, must.Get(peer.Region().Slice(1024, 8))(t), 1))(t)
	finish(a, qa, 2)
	finish(b, qb, 1)
	must.Get(a.Counters())(t)
}

// A program's calls pass the system-call line as commands of the kernel's ABI,
// and its data does not pass it at all.
func TestControlTrafficPassesTheSeam(t *testing.T) {
	command := regexp.MustCompile(`^(?:ioctl|write)\(\d+, (?:INVOKE_WRITE )?(\w+)`)
	moved := regexp.MustCompile(`^(?:read|write)\(.*\) = (\d+)`)
	written := regexp.MustCompile(`^write\(\d+, (?:POST_SEND \{qp_handle=\d+, wr_count=0, sge_count=0, wqe_size=\d+\}|REQ_NOTIFY_CQ \{.*\})\) = \d+$`)
	for _, device := range []string{"sim?net=seam", "soft?port=0"} {
		t.Run(device, func(t *testing.T) {
			var both [2]*Device
			var traces [2]lines
			for i := range both {
				both[i] = must.Get(Open(device, OpenConfig{Trace: &traces[i]}))(t)
				t.Cleanup(func() { require.NoError(t, both[i].Close()) })
			}
			demo(t, both[0], both[1])

			var commands [2]map[string]int
			for i := range traces {
				commands[i] = map[string]int{}
				calls, bytes := map[string]int{}, 0
				for _, line := range traces[i].take() {
					call, _, _ := strings.Cut(line, "(")
					calls[call]++
					if m := command.FindStringSubmatch(line); m != nil {
						commands[i][m[1]]++
					}
					if m := moved.FindStringSubmatch(line); m != nil {
						bytes += must.Get(strconv.Atoi(m[1]))(t)
					}
					if call == "write" {
						require.Regexp(t, written, line, "only doorbells are written, with no work request in them, and armings")
					}
				}
				require.Equal(t, 3, calls["mmap"], "a send, a receive and a completion queue")
				require.Equal(t, 3, calls["munmap"])
				require.Less(t, bytes, 64<<10, "a megabyte went each way")
			}
			delete(commands[0], "QUERY_QP")      // of a client that waits long enough to wonder whether the queue pair lives
			delete(commands[0], "REQ_NOTIFY_CQ") // of a client whose completions are not there yet, and that does not lead
			require.Equal(t, []string{
				"ALLOC_PD", "CREATE_COMP_CHANNEL", "CREATE_CQ", "CREATE_QP", "DEREG_MR", "DESTROY_CQ", "DESTROY_QP",
				"GET_CONTEXT", "MODIFY_QP", "POST_SEND", "QUERY_DEVICE", "QUERY_GID_TABLE", "QUERY_PORT", "REG_MR",
			}, slices.Sorted(maps.Keys(commands[0])))
			require.LessOrEqual(t, commands[0]["POST_SEND"], 34, "a doorbell for each post")
			require.GreaterOrEqual(t, commands[0]["POST_SEND"], 3, "the device spares some while it works")
			require.Zero(t, commands[1]["POST_SEND"], "receives ring none")
			require.Equal(t, 3, commands[0]["MODIFY_QP"], "INIT, RTR, RTS")
		})
	}
}

// gatedKernel is a kernel that calls gate before each call, which fails if gate
// does.
type gatedKernel struct {
	kshim.Kernel
	gate func(call string) error
}

func (k *gatedKernel) wrap(under kshim.Kernel) kshim.Kernel {
	k.Kernel = under
	return k
}

func (k *gatedKernel) Open(path string) (kshim.File, error) {
	if err := k.gate("open"); err != nil {
		return nil, err
	}
	f, err := k.Kernel.Open(path)
	return &gatedFile{f, k}, err
}

type gatedFile struct {
	kshim.File
	k *gatedKernel
}

func (f *gatedFile) Ioctl(arg []byte) error {
	if err := f.k.gate("ioctl"); err != nil {
		return err
	}
	return f.File.Ioctl(arg)
}

func (f *gatedFile) Write(cmd []byte) (int, error) {
	if err := f.k.gate("write"); err != nil {
		return 0, err
	}
	return f.File.Write(cmd)
}

// With the line shut no control call works, on any kernel: there is no other
// way.
func TestNothingGoesAroundTheSeam(t *testing.T) {
	var shut atomic.Bool
	var calls atomic.Int64
	gate := gatedKernel{gate: func(string) error {
		if calls.Add(1); shut.Load() {
			return syscall.EIO
		}
		return nil
	}}
	d := must.Get(Open("sim", OpenConfig{wrap: gate.wrap}))(t)
	defer d.Close()
	mr := must.Get(d.RegMR(make([]byte, 8), 0))(t)
	qp := must.Get(d.CreateQP(4, 4))(t)
	e := must.Get(d.LocalEndpoint(qp))(t)
	spare := must.Get(d.CreateQP(4, 4))(t)

	shut.Store(true)
	_, err := d.RegMR(make([]byte, 8), 0)
	require.ErrorIs(t, err, syscall.EIO)
	_, err = d.CreateQP(1, 1)
	require.ErrorIs(t, err, syscall.EIO)
	_, err = d.CreateCQ(1)
	require.ErrorIs(t, err, syscall.EIO)
	_, err = d.LocalEndpoint(spare)
	require.ErrorIs(t, err, syscall.EIO)
	require.ErrorIs(t, d.ConnectQP(qp, e), syscall.EIO)
	_, err = d.QueryQP(qp)
	require.ErrorIs(t, err, syscall.EIO)
	_, err = d.QueryDevice()
	require.ErrorIs(t, err, syscall.EIO)
	_, err = d.Counters()
	require.ErrorIs(t, err, syscall.EIO)
	_, err = d.Stats()
	require.ErrorIs(t, err, syscall.EIO)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = d.WaitCQ(ctx, qp, make([]WC, 1))
	require.Error(t, err, "waiting arms")

	before := calls.Load()
	n, err := d.PollCQ(qp, make([]WC, 1))
	require.NoError(t, err, "polling is no system call")
	require.Zero(t, n)
	_, err = d.PostRecv(qp, mr, 0, 8)
	require.NoError(t, err, "nor is posting a receive")
	require.Equal(t, before, calls.Load())

	shut.Store(false)
	require.NoError(t, d.DestroyQP(spare))
	require.NoError(t, d.DestroyQP(qp))
	require.NoError(t, d.DeregMR(mr))
}
