package verbs

import (
	"bufio"
	"encoding/binary"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/rdmashim/rdmashim/kshim/abi"
	"github.com/stretchr/testify/require"

	"github.com/rdmashim/rdmashim/tests/kerneltest"
)

// cLayout is the recording that kshim/abi holds its layouts against.
func cLayout(t *testing.T) map[string]map[string][2]int {
	f, err := os.Open("../abi/testdata/layout.golden")
	require.NoError(t, err)
	defer f.Close()
	l := map[string]map[string][2]int{}
	sc := bufio.NewScanner(f)
	for sc.Scan() {
		w := strings.Fields(sc.Text())
		switch w[0] {
		case "struct":
			size, _ := strconv.Atoi(w[2])
			l[w[1]] = map[string][2]int{"": {0, size}}
		case "field":
			off, _ := strconv.Atoi(w[3])
			size, _ := strconv.Atoi(w[4])
			l[w[1]][w[2]] = [2]int{off, size}
		}
	}
	return l
}

// TestTraffic walks through the control path and holds each command, its order
// and its bytes against what C says.
func TestTraffic(t *testing.T) {
	b := newBed(t, QPInit{MaxSendWR: 5, MaxRecvWR: 6, MaxSendSGE: 2, MaxRecvSGE: 3, MaxInline: 40, SigAll: true})
	mr, err := b.pd.RegMR(make([]byte, 4096), abi.AccessLocalWrite|abi.AccessRemoteWrite)
	require.NoError(t, err)
	require.NoError(t, b.qp.Modify(&QPAttr{State: abi.QPSInit, AccessFlags: abi.AccessRemoteWrite, PortNum: 1, PkeyIndex: 3}, 0x39))
	av := abi.QPDest{DGID: [16]byte{15: 9}, SGIDIndex: 3, HopLimit: 64, TrafficClass: 5, IsGlobal: 1, PortNum: 1, DLID: 4792}
	require.NoError(t, b.qp.Modify(&QPAttr{State: abi.QPSRTR, AV: av, PathMTU: abi.MTU1024, RQPSN: 0x123456, DestQPNum: 0x654321, MinRNRTimer: 12, MaxDestRdAtomic: 16}, 0x129181))
	require.NoError(t, b.qp.Modify(&QPAttr{State: abi.QPSRTS, SQPSN: 0xabcdef, Timeout: 14, RetryCnt: 7, RNRRetry: 6, MaxRdAtomic: 15}, 0x12e01))
	_, err = b.qp.Post([]SendWR{{Opcode: abi.WRSend}})
	require.NoError(t, err)
	require.NoError(t, b.scq.Arm(true))
	_, err = b.qp.Query()
	require.NoError(t, err)
	require.NoError(t, mr.Dereg())
	require.NoError(t, b.qp.Destroy())
	require.NoError(t, b.scq.Destroy())
	require.NoError(t, b.pd.Dealloc())

	type fields map[string]uint64
	pd, comp := uint64(b.pd.handle), uint64(b.c.compFD)
	want := []struct {
		cmd  abi.Command
		c    string
		outs [2]int
		f    fields
	}{
		{abi.CmdGetContext, "ib_uverbs_get_context", [2]int{8, 0}, nil},
		{abi.CmdCreateCompChannel, "ib_uverbs_create_comp_channel", [2]int{4, 0}, nil},
		{abi.CmdQueryPort, "ib_uverbs_query_port", [2]int{40, 0}, fields{"port_num": 1}},
		{abi.CmdAllocPD, "ib_uverbs_alloc_pd", [2]int{4, 0}, nil},
		{abi.CmdCreateCQ, "ib_uverbs_create_cq", [2]int{8, 16}, fields{"user_handle": b.scq.key, "cqe": 64, "comp_channel": comp}},
		{abi.CmdCreateCQ, "ib_uverbs_create_cq", [2]int{8, 16}, fields{"user_handle": b.rcq.key, "cqe": 64, "comp_channel": comp}},
		{abi.CmdCreateQP, "ib_uverbs_create_qp", [2]int{32, 32}, fields{"user_handle": b.qp.key, "pd_handle": pd, "send_cq_handle": uint64(b.scq.handle),
			"recv_cq_handle": uint64(b.rcq.handle), "max_send_wr": 5, "max_recv_wr": 6, "max_send_sge": 2, "max_recv_sge": 3, "max_inline_data": 40, "sq_sig_all": 1, "qp_type": 2}},
		{abi.CmdRegMR, "ib_uverbs_reg_mr", [2]int{12, 0}, fields{"start": mr.Addr(), "hca_va": mr.Addr(), "length": 4096, "pd_handle": pd, "access_flags": 3}},
		{abi.CmdModifyQP, "ib_uverbs_modify_qp", [2]int{}, fields{"qp_handle": uint64(b.qp.handle), "attr_mask": 0x39, "qp_state": 1, "qp_access_flags": 2, "port_num": 1, "pkey_index": 3}},
		{abi.CmdModifyQP, "ib_uverbs_modify_qp", [2]int{}, fields{"qp_handle": uint64(b.qp.handle), "attr_mask": 0x129181, "qp_state": 2, "path_mtu": 3, "rq_psn": 0x123456,
			"dest_qp_num": 0x654321, "min_rnr_timer": 12, "max_dest_rd_atomic": 16}},
		{abi.CmdModifyQP, "ib_uverbs_modify_qp", [2]int{}, fields{"qp_handle": uint64(b.qp.handle), "attr_mask": 0x12e01, "qp_state": 3, "sq_psn": 0xabcdef, "timeout": 14, "retry_cnt": 7, "rnr_retry": 6, "max_rd_atomic": 15}},
		{abi.CmdPostSend, "ib_uverbs_post_send", [2]int{4, 0}, fields{"qp_handle": uint64(b.qp.handle), "wqe_size": 56}},
		{abi.CmdReqNotifyCQ, "ib_uverbs_req_notify_cq", [2]int{}, fields{"cq_handle": uint64(b.scq.handle), "solicited_only": 1}},
		{abi.CmdQueryQP, "ib_uverbs_query_qp", [2]int{128, 0}, fields{"qp_handle": uint64(b.qp.handle), "attr_mask": 0x1fffff}},
		{abi.CmdDeregMR, "ib_uverbs_dereg_mr", [2]int{}, fields{"mr_handle": uint64(mr.handle)}},
		{abi.CmdDestroyQP, "ib_uverbs_destroy_qp", [2]int{4, 0}, fields{"qp_handle": uint64(b.qp.handle)}},
		{abi.CmdDestroyCQ, "ib_uverbs_destroy_cq", [2]int{8, 0}, fields{"cq_handle": uint64(b.scq.handle)}},
		{abi.CmdDeallocPD, "ib_uverbs_dealloc_pd", [2]int{}, fields{"pd_handle": pd}},
	}
	l := cLayout(t)
	calls := b.Taken()
	require.Len(t, calls, len(want))
	for i, w := range want {
		got := calls[i]
		require.Equal(t, w.cmd, got.Cmd, i)
		require.Equal(t, w.outs, [2]int{len(got.Out), len(got.UHW)}, got.Cmd)
		require.Equal(t, l[w.c][""][1], len(got.In), got.Cmd)
		image := make([]byte, len(got.In))
		set := func(name string, v uint64) {
			span, ok := l[w.c][name]
			require.True(t, ok, "%s.%s", w.c, name)
			var b8 [8]byte
			binary.LittleEndian.PutUint64(b8[:], v)
			copy(image[span[0]:span[0]+span[1]], b8[:])
		}
		for name, v := range w.f {
			set(name, v)
		}
		if got.Written { // carries the address of its response
			copy(image[:8], got.In[:8])
		}
		if w.f["attr_mask"] == 0x129181 {
			d := l["ib_uverbs_qp_dest"]
			image[d["dgid"][0]+15] = 9
			binary.LittleEndian.PutUint16(image[d["dlid"][0]:], 4792)
			for name, v := range map[string]byte{"sgid_index": 3, "hop_limit": 64, "traffic_class": 5, "is_global": 1, "port_num": 1} {
				image[d[name][0]] = v
			}
		}
		require.Equal(t, image, got.In, got.Cmd)
		if !got.Written {
			checkInvoke(t, &got)
		} else {
			require.Equal(t, []byte{28, 0, 0, 0, 8, 0, 1, 0}, got.Raw[:8], "header of the doorbell: 32 bytes in, 4 out")
			require.Equal(t, abi.CmdPostSend, got.Cmd, "only the doorbell goes by write()")
		}
	}
}

// checkInvoke holds the ioctl's own bytes against the header and attributes
// measured on Linux.
func checkInvoke(t *testing.T, c *kerneltest.Call) {
	raw := c.Raw
	n := binary.LittleEndian.Uint16(raw[6:])
	require.EqualValues(t, len(raw), binary.LittleEndian.Uint16(raw[0:]))
	require.EqualValues(t, 24+16*int(n), len(raw))
	require.Zero(t, binary.LittleEndian.Uint32(raw[2:]), "object DEVICE, method INVOKE_WRITE")
	require.EqualValues(t, 14, binary.LittleEndian.Uint32(raw[16:]), "driver id")
	for i := range int(n) {
		a := raw[24+16*i:]
		id, length, flags := binary.LittleEndian.Uint16(a), binary.LittleEndian.Uint16(a[2:]), binary.LittleEndian.Uint16(a[4:])
		require.EqualValues(t, 1, flags)
		switch id {
		case 0:
			require.EqualValues(t, len(c.In), length)
			if length <= 8 {
				require.Equal(t, c.In, a[8:8+length], "short input stands in the attribute")
			}
		case 1:
			require.EqualValues(t, len(c.Out), length)
		case 2:
			require.EqualValues(t, 8, length)
			require.EqualValues(t, c.Cmd, binary.LittleEndian.Uint64(a[8:]))
		case 0x1001:
			require.EqualValues(t, len(c.UHW), length)
		default:
			t.Errorf("attribute %#x", id)
		}
	}
}
