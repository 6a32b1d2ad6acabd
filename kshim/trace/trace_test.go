package trace

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rdmashim/rdmashim/kshim"
	"github.com/rdmashim/rdmashim/kshim/abi"
	"github.com/rdmashim/rdmashim/tests/must"
)

// put encodes structures one after the other.
func put(parts ...any) []byte {
	var b []byte
	for i := 0; i < len(parts); i += 2 {
		at := len(b)
		b = append(b, make([]byte, parts[i+1].(int))...)
		parts[i].(abi.Struct).Put(b[at:])
	}
	return b
}

// writeCmd is a command of write(), with room for out bytes of answer.
func writeCmd(n abi.Command, req abi.Struct, size, out int) []byte {
	all := abi.CmdHdrSize + size
	return put(&abi.CmdHdr{Command: n, InWords: uint16(all / 4), OutWords: uint16(out / 4)}, abi.CmdHdrSize, req, size)
}

// ioctlArg is an argument with its attributes.
func ioctlArg(o abi.ObjectID, m abi.MethodID, attrs ...abi.IoctlAttr) []byte {
	size := abi.IoctlHdrSize + len(attrs)*abi.IoctlAttrSize
	b := put(&abi.IoctlHdr{Length: uint16(size), ObjectID: o, MethodID: m, NumAttrs: uint16(len(attrs)), DriverID: abi.DriverRXE}, abi.IoctlHdrSize)
	for _, a := range attrs {
		b = append(b, put(&a, abi.IoctlAttrSize)...)
	}
	return b
}

func TestCommands(t *testing.T) {
	k, f, out := traced(t)
	page := make([]byte, 4096)
	addr, _ := f.Pin(page)
	require.Equal(t, uint64(0x1000), addr)
	require.Empty(t, out.take(), "Pin is no call")
	answer := func(b []byte) { k.do = func([]byte) { copy(page[256:], b) } }

	for _, x := range []struct {
		name, want  string
		cmd, answer []byte
	}{
		{
			"a response", "write(3, ALLOC_PD {}) = 16 {pd_handle=7}",
			writeCmd(abi.CmdAllocPD, &abi.AllocPD{Response: addr + 256}, 8, 4), put(&abi.AllocPDResp{PDHandle: 7}, 4),
		},
		{
			"no response", "write(3, DEALLOC_PD {pd_handle=7}) = 12",
			writeCmd(abi.CmdDeallocPD, &abi.DeallocPD{PDHandle: 7}, 4, 0), nil,
		},
		{
			"the doorbell", "write(3, POST_SEND {qp_handle=9, wr_count=0, sge_count=0, wqe_size=56}) = 32",
			writeCmd(abi.CmdPostSend, &abi.PostSend{Response: addr, QPHandle: 9, WQESize: 56}, 24, 4), nil,
		},
		{
			"a driver's part, flags and kinds",
			"write(3, CREATE_QP {user_handle=0xff00ff, pd_handle=1, send_cq_handle=2, recv_cq_handle=3, srq_handle=0, max_send_wr=4, max_recv_wr=5, " +
				"max_send_sge=6, max_recv_sge=7, max_inline_data=8, sq_sig_all=1, qp_type=RC, is_srq=0}) = 64 {qp_handle=2, qpn=17, max_send_wr=4, max_recv_wr=0, " +
				"max_send_sge=0, max_recv_sge=0, max_inline_data=0} uhw {rq_mi={offset=0x1000, size=4096}, sq_mi={offset=0x2000, size=8192}}",
			writeCmd(abi.CmdCreateQP, &abi.CreateQP{Response: addr + 256, UserHandle: 0xff00ff, PDHandle: 1, SendCQHandle: 2, RecvCQHandle: 3, MaxSendWR: 4, MaxRecvWR: 5,
				MaxSendSGE: 6, MaxRecvSGE: 7, MaxInlineData: 8, SQSigAll: 1, QPType: abi.QPTRC}, 56, 64),
			put(&abi.CreateQPResp{QPHandle: 2, QPN: 17, MaxSendWR: 4}, 32, &abi.RXECreateQPResp{RQMI: abi.MMInfo{Offset: 0x1000, Size: 4096}, SQMI: abi.MMInfo{Offset: 0x2000, Size: 8192}}, 32),
		},
		{
			"what the mask names", "write(3, MODIFY_QP {qp_handle=9, attr_mask=STATE|ACCESS_FLAGS|PORT, qp_access_flags=REMOTE_WRITE|0x40000000, qp_state=INIT, port_num=1}) = 120",
			writeCmd(abi.CmdModifyQP, &abi.ModifyQP{QPHandle: 9, AttrMask: abi.QPMaskState | abi.QPMaskAccessFlags | abi.QPMaskPort, QPState: abi.QPSInit, PortNum: 1,
				QPAccessFlags: abi.AccessRemoteWrite | 0x40000000, Timeout: 99}, abi.ModifyQPSize, 0), nil,
		},
		{
			"more than is known", "write(3, DEALLOC_PD in_words=3 {pd_handle=7} + 0x0100) = 14",
			append(writeCmd(abi.CmdDeallocPD, &abi.DeallocPD{PDHandle: 7}, 4, 0), 1, 0), nil,
		},
		{"too short", "write(3, DEALLOC_PD in_words=3 short 0x0700) = 10", writeCmd(abi.CmdDeallocPD, &abi.DeallocPD{PDHandle: 7}, 4, 0)[:10], nil},
		{"no header", "write(3, 0x010203) = 3", []byte{1, 2, 3}, nil},
		{"nothing", "write(3, (empty)) = 0", nil, nil},
		{"unknown", "write(3, Command(99) 0xaa) = 9", append(put(&abi.CmdHdr{Command: 99}, 8), 0xaa), nil},
		{"unknown flags", "write(3, Command(1073741824)) = 8", put(&abi.CmdHdr{Command: 1 << 30, InWords: 2}, 8), nil},
		{
			"a response that is nowhere", "write(3, ALLOC_PD {}) = 16 response not in announced memory",
			writeCmd(abi.CmdAllocPD, &abi.AllocPD{Response: 0xdead0000}, 8, 4), nil,
		},
		{
			"extended", "write(3, EX_QUERY_DEVICE 0x0000000000000000) = 32",
			append(put(&abi.CmdHdr{Command: abi.CmdFlagExtended | 1, InWords: 1}, 8, &abi.ExCmdHdr{}, 16), make([]byte, 8)...), nil,
		},
	} {
		answer(x.answer)
		must.Get(f.Write(x.cmd))(t)
		require.Equal(t, x.want, strings.ReplaceAll(out.take(), " in_words=0", ""), x.name)
	}
}

func TestIoctls(t *testing.T) {
	k, f, out := traced(t)
	page := make([]byte, 4096)
	addr, _ := f.Pin(page)
	create := put(&abi.CreateCQ{UserHandle: 5, CQE: 10, CompChannel: -1}, abi.CreateCQSize)
	copy(page, create)
	k.do = func(arg []byte) {
		copy(page[256:], put(&abi.CreateCQResp{CQHandle: 3, CQE: 15}, 8))
		copy(page[512:], put(&abi.RXECreateCQResp{MI: abi.MMInfo{Offset: 0x3000, Size: 4096}}, 16))
		copy(page[1024:], put(&abi.GIDEntry{GID: [16]byte{0xfe, 0x80, 15: 1}, PortNum: 1, GIDType: abi.GIDTypeRoCEv2}, 32))
	}
	for _, x := range []struct {
		name, want string
		arg        []byte
	}{
		{
			"a command", "ioctl(3, INVOKE_WRITE CREATE_CQ {user_handle=0x5, cqe=10, comp_vector=0, comp_channel=-1}) = 0 {cq_handle=3, cqe=15} uhw {mi={offset=0x3000, size=4096}}",
			ioctlArg(0, 0, abi.IoctlAttr{AttrID: abi.AttrCoreIn, Len: 32, Data: addr}, abi.IoctlAttr{AttrID: abi.AttrCoreOut, Len: 8, Data: addr + 256},
				abi.IoctlAttr{AttrID: abi.AttrWriteCmd, Len: 8, Data: uint64(abi.CmdCreateCQ)}, abi.IoctlAttr{AttrID: abi.AttrUHWOut, Len: 16, Data: addr + 512}),
		},
		{
			"a small request stands inline", "ioctl(3, INVOKE_WRITE DEALLOC_PD {pd_handle=6}) = 0",
			ioctlArg(0, 0, abi.IoctlAttr{AttrID: abi.AttrWriteCmd, Len: 8, Data: uint64(abi.CmdDeallocPD)}, abi.IoctlAttr{AttrID: abi.AttrCoreIn, Len: 4, Data: 6}),
		},
		{
			"a method", "ioctl(3, QUERY_GID_ENTRY {port=1, gid_index=0, flags=0}) = 0 {resp_entry={gid=fe80::1, gid_index=0, port_num=1, gid_type=ROCE_V2, netdev_ifindex=0}}",
			ioctlArg(0, abi.MethodQueryGIDEntry, abi.IoctlAttr{AttrID: 0, Len: 8, Data: 1}, abi.IoctlAttr{AttrID: 1, Len: 8}, abi.IoctlAttr{AttrID: 2, Len: 4}, abi.IoctlAttr{AttrID: 3, Len: 32, Data: addr + 1024}),
		},
		{
			"what it makes and frees", "ioctl(3, CQ_CREATE {cqe=9}) = 0 {handle=4}",
			ioctlArg(abi.ObjectCQ, 0, abi.IoctlAttr{AttrID: 0, Data: 4}, abi.IoctlAttr{AttrID: 1, Len: 4, Data: 9}),
		},
		{
			"unknown", "ioctl(3, FLOW.method(77) {attr(0x5)={len=8, data=0xff}}) = 0",
			ioctlArg(abi.ObjectFlow, 77, abi.IoctlAttr{AttrID: 5, Len: 8, Data: 255}),
		},
		{
			"no command", "ioctl(3, INVOKE_WRITE no command) = 0", ioctlArg(0, 0),
		},
		{
			"a request that is nowhere", "ioctl(3, INVOKE_WRITE CREATE_CQ request not in announced memory) = 0",
			ioctlArg(0, 0, abi.IoctlAttr{AttrID: abi.AttrCoreIn, Len: 32, Data: 1}, abi.IoctlAttr{AttrID: abi.AttrWriteCmd, Len: 8, Data: uint64(abi.CmdCreateCQ)}),
		},
		{
			"a header that lies", "ioctl(3, PD_DESTROY {handle=1} length=40 num_attrs=7) = 0",
			func() []byte {
				b := ioctlArg(abi.ObjectPD, 0, abi.IoctlAttr{Data: 1})
				b[6] = 7
				return b
			}(),
		},
		{
			"another driver", "ioctl(3, PD_DESTROY {} driver_id=SIW) = 0",
			func() []byte { b := ioctlArg(abi.ObjectPD, 0); b[16] = 18; return b }(),
		},
		{"short", "ioctl(3, 0x1800) = 0", []byte{0x18, 0}},
	} {
		require.NoError(t, f.Ioctl(x.arg))
		require.Equal(t, x.want, out.take(), x.name)
	}
}

func TestConnectionManager(t *testing.T) {
	k, out := &fakeKernel{}, &log{t: t}
	f := must.Get(New(k, out).Open("/dev/infiniband/rdma_cm"))(t)
	out.take()
	page := make([]byte, 1024)
	addr, _ := f.Pin(page)
	cmd := func(n abi.UCMCommand, out int, req abi.Struct, size int) []byte {
		return put(&abi.UCMHdr{Cmd: n, In: uint16(size), Out: uint16(out)}, abi.UCMHdrSize, req, size)
	}
	event := &abi.UCMEventResp{UID: 7, ID: 1, Event: abi.UCMEventConnectRequest}
	(&abi.UCMConnParam{QPNum: 17, PrivateData: [256]byte{1, 2}, PrivateDataLen: 2, RetryCount: 7}).Put(event.Param[:])
	var to abi.SockaddrStorage
	must.Get(to.Set(netip.MustParseAddrPort("10.0.0.1:7471")))(t)
	for _, x := range []struct {
		want        string
		cmd, answer []byte
	}{
		{
			"write(3, CREATE_ID {uid=0x9, ps=TCP, qp_type=RC}) = 32 {id=0}",
			cmd(abi.UCMCmdCreateID, 4, &abi.UCMCreateID{UID: 9, Response: addr, PS: abi.UCMPSTCP, QPType: abi.QPTRC}, abi.UCMCreateIDSize), put(&abi.UCMCreateIDResp{}, 4),
		},
		{
			"write(3, RESOLVE_ADDR {id=0, timeout_ms=2000, src_size=0, dst_size=16, src_addr=none, dst_addr=10.0.0.1:7471}) = 280",
			cmd(abi.UCMCmdResolveAddr, 0, &abi.UCMResolveAddr{TimeoutMS: 2000, DstSize: 16, DstAddr: to}, abi.UCMResolveAddrSize), nil,
		},
		{
			"write(3, GET_EVENT {}) = 16 {uid=0x7, id=1, event=CONNECT_REQUEST, status=0, param={qp_num=17, qkey=0, private_data_len=2, srq=0, responder_resources=0, " +
				"initiator_depth=0, flow_control=0, retry_count=7, rnr_retry_count=0, valid=0, private_data=0x0102}, ece={vendor_id=0, attr_mod=0}}",
			cmd(abi.UCMCmdGetEvent, abi.UCMEventRespSize, &abi.UCMGetEvent{Response: addr}, 8), put(event, abi.UCMEventRespSize),
		},
		{
			"write(3, INIT_QP_ATTR {id=1, qp_state=RTR}) = 24 {qp_attr_mask=STATE|PATH_MTU, qp_state=RTR, path_mtu=1024}",
			cmd(abi.UCMCmdInitQPAttr, abi.QPAttrSize, &abi.UCMInitQPAttr{Response: addr, ID: 1, QPState: 2}, abi.UCMInitQPAttrSize),
			put(&abi.QPAttr{QPAttrMask: abi.QPMaskState | abi.QPMaskPathMTU, QPState: 2, PathMTU: 3}, abi.QPAttrSize),
		},
		{
			"write(3, QUERY {id=1, option=0}) = 24 {node_guid=0x5, port_num=1, pkey=65535, src_size=0, dst_size=16, src_addr=none, dst_addr=10.0.0.1:7471, ibdev_index=3}",
			cmd(abi.UCMCmdQuery, abi.UCMQueryAddrRespSize, &abi.UCMQuery{Response: addr, ID: 1}, abi.UCMQuerySize),
			put(&abi.UCMQueryAddrResp{NodeGUID: 5, PortNum: 1, Pkey: 65535, DstSize: 16, DstAddr: to, IBDevIndex: 3}, abi.UCMQueryAddrRespSize),
		},
		{"write(3, REJECT {id=1, private_data_len=0, reason=28, private_data=0}) = 272", cmd(abi.UCMCmdReject, 0, &abi.UCMReject{ID: 1, Reason: 28}, abi.UCMRejectSize), nil},
		{"write(3, UCMCommand(99)) = 8", put(&abi.UCMHdr{Cmd: 99}, 8), nil},
		{"write(3, LISTEN in=8 short 0x0000) = 10", cmd(abi.UCMCmdListen, 0, &abi.UCMListen{}, 8)[:10], nil},
		{"write(3, 0x01) = 1", []byte{1}, nil},
	} {
		k.do = func([]byte) { clear(page); copy(page, x.answer) }
		must.Get(f.Write(x.cmd))(t)
		require.Equal(t, x.want, out.take())
	}
}

func TestOtherCalls(t *testing.T) {
	k, out := &fakeKernel{names: []string{"a", "b"}}, &log{t: t}
	traced := New(k, out, WithName("7 sim0"), WithPin())
	must.Get(traced.ReadDir("/sys/class"))(t)
	require.Equal(t, `[7 sim0] readdir("/sys/class") = 2 ["a", "b"]`, out.take())

	attr := must.Get(traced.Open("/sys/class/x"))(t)
	k.read = "rxe0\n"
	must.Get(attr.Read(t.Context(), make([]byte, 64)))(t)
	require.Equal(t, "[7 sim0] open(\"/sys/class/x\") = 3\n[7 sim0] read(3) = 5 \"rxe0\\n\"", out.take())

	event := must.Get(traced.Adopt(4))(t)
	require.Empty(t, out.take(), "it is no call")
	k.read = string(put(&abi.CompEvent{CQHandle: 0x11}, 8))
	_, _ = event.Read(t.Context(), make([]byte, 64))
	k.read = string(put(&abi.AsyncEvent{Element: 0x12, EventType: abi.EventQPFatal}, 16))
	_, _ = event.Read(t.Context(), make([]byte, 64))
	k.read = "odd"
	_, _ = event.Read(t.Context(), make([]byte, 64))
	require.Equal(t, "[7 sim0] read(4) = 8 {cq_handle=0x11}\n[7 sim0] read(4) = 16 {element=0x12, event_type=QP_FATAL}\n[7 sim0] read(4) = 3 0x6f6464", out.take())

	m := must.Get(attr.Mmap(0x4000, 8192))(t)
	require.NoError(t, attr.Munmap(m))
	require.Equal(t, fmt.Sprintf("[7 sim0] mmap(3, offset=0x4000, length=8192) = %p\n[7 sim0] munmap(%p, length=8192) = 0", m, m), out.take())

	_, release := attr.Pin(make([]byte, 16))
	release()
	release()
	require.Equal(t, "[7 sim0] pin(16) = 0x1000\n[7 sim0] unpin(0x1000) = 0", out.take())
	require.NoError(t, attr.Close())
	require.NoError(t, attr.Close())
	require.Equal(t, "[7 sim0] close(3) = 0", out.take())
}

func TestErrors(t *testing.T) {
	k, f, out := traced(t)
	for _, x := range []struct {
		err  error
		want string
	}{
		{syscall.EINVAL, "-1 EINVAL (Invalid argument)"},
		{syscall.ENOENT, "-1 ENOENT (No such file or directory)"},
		{fmt.Errorf("ioctl /dev/infiniband/uverbs0: pd handle 7 does not exist: %w", syscall.ENOENT), "-1 ENOENT (No such file or directory): pd handle 7 does not exist"},
		{fmt.Errorf("open /dev/infiniband/uverbs0: %w (a rule\nmust let you)", syscall.EACCES), "-1 EACCES (Permission denied): a rule must let you"},
		{kshim.ClosedError("use of closed file"), "-1 EBADF (Bad file descriptor): use of closed file"},
		{errors.New("something else"), "-1 something else"},
		{context.Canceled, "? (context canceled)"},
		{io.EOF, "0"},
		{syscall.Errno(4242), "-1 errno 4242 (Errno 4242)"},
	} {
		if runtime.GOOS != "linux" && !strings.Contains(x.want, "EOF") {
			t.Skip("the texts of errnos are Linux's; run it on Linux")
		}
		k.err = x.err
		arg := ioctlArg(abi.ObjectPD, 0, abi.IoctlAttr{Data: 1})
		require.Equal(t, x.err, f.Ioctl(arg), "the error itself comes back")
		require.Equal(t, "ioctl(3, PD_DESTROY {handle=1}) = "+x.want, out.take())
	}
	_, err := f.Write(nil)
	require.Equal(t, k.err, err)
	_, err = f.Mmap(0, 1)
	require.Equal(t, k.err, err)
	require.Equal(t, k.err, f.Munmap(nil))
	_, err = f.Read(t.Context(), nil)
	require.Equal(t, k.err, err)
	require.Equal(t, k.err, f.Close())
}

// TestHandsOn holds that the wrapped kernel sees the very calls, and its caller
// the very answers.
func TestHandsOn(t *testing.T) {
	k, f, _ := traced(t)
	buf := make([]byte, 8)
	m := make([]byte, 4)
	n, err := f.Write(buf)
	require.Equal(t, 8, n)
	require.NoError(t, err)
	require.NoError(t, f.Ioctl(buf))
	got := must.Get(f.Mmap(7, 9))(t)
	require.Len(t, got, 9)
	require.NoError(t, f.Munmap(m))
	addr, release := f.Pin(buf)
	require.Equal(t, uint64(0x1000), addr)
	release()
	k.read = "x"
	n, err = f.Read(t.Context(), buf)
	require.Equal(t, 1, n)
	require.NoError(t, err)
	require.NoError(t, f.Close())
	require.Equal(t, []any{"write", buf, "ioctl", buf, "mmap", uint64(7), 9, "munmap", m, "pin", buf, "unpin", "read", buf, "close"}, k.calls)
	for _, c := range k.calls {
		if b, ok := c.([]byte); ok && len(b) == 8 {
			require.Same(t, &buf[0], &b[0], "not a copy")
		}
	}
}

// TestProgress: the wrapped file has the abilities of the file inside, and no
// others.
func TestProgress(t *testing.T) {
	_, f, out := traced(t)
	_, ok := f.(kshim.Driven)
	require.False(t, ok)
	inner := &fakeProgressFile{fakeFile: &fakeFile{fakeKernel: &fakeKernel{}}}
	k := &kernel{inner: inner.fakeKernel, out: &output{w: out}, memory: &memory{}}
	p, ok := k.wrap(inner, deviceFile, "", "3").asFile().(kshim.Driven)
	require.True(t, ok)
	require.True(t, p.Progress())
	require.False(t, p.Progress())
	require.True(t, p.Lead(t.Context(), p.News(), nil, 0))
	require.Empty(t, out.take())
}

// TestReleasedMemory: memory that is no longer announced is not read.
func TestReleasedMemory(t *testing.T) {
	_, f, out := traced(t)
	addr, release := f.Pin(make([]byte, 64))
	cmd := writeCmd(abi.CmdAllocPD, &abi.AllocPD{Response: addr}, 8, 4)
	_, _ = f.Write(cmd)
	require.Equal(t, "write(3, ALLOC_PD {}) = 16 {pd_handle=0}", out.take())
	cmd = writeCmd(abi.CmdAllocPD, &abi.AllocPD{Response: addr + 61}, 8, 4)
	_, _ = f.Write(cmd)
	require.Equal(t, "write(3, ALLOC_PD {}) = 16 response not in announced memory", out.take(), "its end is outside")
	cmd = writeCmd(abi.CmdAllocPD, &abi.AllocPD{Response: ^uint64(0) - 1}, 8, 4)
	_, _ = f.Write(cmd)
	require.Contains(t, out.take(), "not in announced memory", "no wrapping around")
	release()
	cmd = writeCmd(abi.CmdAllocPD, &abi.AllocPD{Response: addr}, 8, 4)
	_, _ = f.Write(cmd)
	require.Equal(t, "write(3, ALLOC_PD {}) = 16 response not in announced memory", out.take())
}

// TestLinesStayWhole: calls beside each other, on memory that they share and
// change; the race detector looks on.
func TestLinesStayWhole(t *testing.T) {
	out := &log{t: t}
	k := New(&fakeKernel{}, out, WithTime())
	f := must.Get(k.Open("/dev/infiniband/uverbs0"))(t)
	shared := make([]byte, 64)
	var calls sync.WaitGroup
	for range 8 {
		calls.Go(func() {
			for range 100 {
				addr, release := f.Pin(shared)
				_, _ = f.Write(writeCmd(abi.CmdAllocPD, &abi.AllocPD{Response: addr}, 8, 4))
				_ = f.Ioctl(ioctlArg(abi.ObjectPD, 0, abi.IoctlAttr{Data: 1}))
				release()
			}
		})
	}
	calls.Wait()
	lines := strings.Split(out.take(), "\n")
	require.Len(t, lines, 1+8*100*2)
	for _, l := range lines[1:] {
		require.Regexp(t, `^ +[0-9.]+ (write\(3, ALLOC_PD \{\}\) = 16 \{pd_handle=0\}|ioctl\(3, PD_DESTROY \{handle=1\}\) = 0) <[0-9.]+>$`, l)
	}
}

// namedFile is a file that tells its name, as those of the emulator do.
type namedFile struct {
	*fakeFile
	name string
}

func (f *namedFile) Path() string { return f.name }

// TestOf: files that were found by their numbers are traced, too, each as its
// name says, and addresses lie in the program's memory without Pin.
func TestOf(t *testing.T) {
	page := make([]byte, 64)
	(&abi.AllocPDResp{PDHandle: 9}).Put(page)
	slice := func(addr, n uint64) []byte {
		if addr != 0x7000 {
			return nil
		}
		return page[:n]
	}
	k, out := &fakeKernel{}, &log{t: t}
	plain := &namedFile{&fakeFile{k, 0}, "/dev/infiniband/uverbs0"}
	require.Same(t, plain, Of(k, plain, 7))

	of := New(k, out, WithMemory(slice))
	device := Of(of, plain, 7)
	cmd := writeCmd(abi.CmdAllocPD, &abi.AllocPD{Response: 0x7000}, abi.AllocPDSize, abi.AllocPDRespSize)
	must.Get(device.Write(cmd))(t)
	require.Equal(t, "write(7, ALLOC_PD {}) = 16 {pd_handle=9}", out.take())
	require.Equal(t, 7, device.(interface{ FD() int }).FD())

	k.read = string(put(&abi.CompEvent{CQHandle: 5}, abi.CompEventSize))
	events := Of(of, &namedFile{&fakeFile{k, 0}, "[infinibandevent]"}, 8)
	must.Get(events.Read(t.Context(), make([]byte, 64)))(t)
	require.Equal(t, "read(8) = 8 {cq_handle=0x5}", out.take())

	cm := Of(of, &namedFile{&fakeFile{k, 0}, "/dev/infiniband/rdma_cm"}, 9)
	must.Get(cm.Write(make([]byte, abi.UCMHdrSize)))(t)
	require.Contains(t, out.take(), "write(9, CREATE_ID")
}
