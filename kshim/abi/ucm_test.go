package abi

import (
	"net/netip"
	"testing"

	"github.com/stretchr/testify/require"
)

var ucmStructs = []cStruct{
	{&UCMHdr{}, "rdma_ucm_cmd_hdr", UCMHdrSize},
	{&UCMCreateID{}, "rdma_ucm_create_id", UCMCreateIDSize},
	{&UCMCreateIDResp{}, "rdma_ucm_create_id_resp", UCMCreateIDRespSize},
	{&UCMDestroyID{}, "rdma_ucm_destroy_id", UCMDestroyIDSize},
	{&UCMDestroyIDResp{}, "rdma_ucm_destroy_id_resp", UCMDestroyIDRespSize},
	{&UCMBindIP{}, "rdma_ucm_bind_ip", UCMBindIPSize},
	{&UCMResolveIP{}, "rdma_ucm_resolve_ip", UCMResolveIPSize},
	{&UCMQueryRouteResp{}, "rdma_ucm_query_route_resp", UCMQueryRouteRespSize},
	{&UCMJoinIPMcast{}, "rdma_ucm_join_ip_mcast", UCMJoinIPMcastSize},
	{&UCMBind{}, "rdma_ucm_bind", UCMBindSize},
	{&UCMResolveAddr{}, "rdma_ucm_resolve_addr", UCMResolveAddrSize},
	{&UCMResolveRoute{}, "rdma_ucm_resolve_route", UCMResolveRouteSize},
	{&UCMQuery{}, "rdma_ucm_query", UCMQuerySize},
	{&UCMQueryAddrResp{}, "rdma_ucm_query_addr_resp", UCMQueryAddrRespSize},
	{&UCMQueryPathResp{}, "rdma_ucm_query_path_resp", UCMQueryPathRespSize},
	{&UCMConnParam{}, "rdma_ucm_conn_param", UCMConnParamSize},
	{&UCMUDParam{}, "rdma_ucm_ud_param", UCMUDParamSize},
	{&UCMECE{}, "rdma_ucm_ece", UCMECESize},
	{&UCMConnect{}, "rdma_ucm_connect", UCMConnectSize},
	{&UCMListen{}, "rdma_ucm_listen", UCMListenSize},
	{&UCMAccept{}, "rdma_ucm_accept", UCMAcceptSize},
	{&UCMReject{}, "rdma_ucm_reject", UCMRejectSize},
	{&UCMDisconnect{}, "rdma_ucm_disconnect", UCMDisconnectSize},
	{&UCMInitQPAttr{}, "rdma_ucm_init_qp_attr", UCMInitQPAttrSize},
	{&UCMNotify{}, "rdma_ucm_notify", UCMNotifySize},
	{&UCMGetEvent{}, "rdma_ucm_get_event", UCMGetEventSize},
	{&UCMEventResp{}, "rdma_ucm_event_resp", UCMEventRespSize},
	{&UCMSetOption{}, "rdma_ucm_set_option", UCMSetOptionSize},
	{&UCMMigrateID{}, "rdma_ucm_migrate_id", UCMMigrateIDSize},
	{&UCMMigrateResp{}, "rdma_ucm_migrate_resp", UCMMigrateRespSize},
	{&UCMJoinMcast{}, "rdma_ucm_join_mcast", UCMJoinMcastSize},
	{&UCMPathRec{}, "ib_path_rec_data", UCMPathRecSize},
	{&QPAttr{}, "ib_uverbs_qp_attr", QPAttrSize},
}

var ucmNumbers = []struct {
	c string
	v uint64
}{
	{"RDMA_USER_CM_ABI_VERSION", uint64(UCMABIVersion)},
	{"RDMA_MAX_PRIVATE_DATA", uint64(UCMMaxPrivateData)},
	{"RDMA_USER_CM_CMD_CREATE_ID", uint64(UCMCmdCreateID)},
	{"RDMA_USER_CM_CMD_DESTROY_ID", uint64(UCMCmdDestroyID)},
	{"RDMA_USER_CM_CMD_BIND_IP", uint64(UCMCmdBindIP)},
	{"RDMA_USER_CM_CMD_RESOLVE_IP", uint64(UCMCmdResolveIP)},
	{"RDMA_USER_CM_CMD_RESOLVE_ROUTE", uint64(UCMCmdResolveRoute)},
	{"RDMA_USER_CM_CMD_QUERY_ROUTE", uint64(UCMCmdQueryRoute)},
	{"RDMA_USER_CM_CMD_CONNECT", uint64(UCMCmdConnect)},
	{"RDMA_USER_CM_CMD_LISTEN", uint64(UCMCmdListen)},
	{"RDMA_USER_CM_CMD_ACCEPT", uint64(UCMCmdAccept)},
	{"RDMA_USER_CM_CMD_REJECT", uint64(UCMCmdReject)},
	{"RDMA_USER_CM_CMD_DISCONNECT", uint64(UCMCmdDisconnect)},
	{"RDMA_USER_CM_CMD_INIT_QP_ATTR", uint64(UCMCmdInitQPAttr)},
	{"RDMA_USER_CM_CMD_GET_EVENT", uint64(UCMCmdGetEvent)},
	{"RDMA_USER_CM_CMD_GET_OPTION", uint64(UCMCmdGetOption)},
	{"RDMA_USER_CM_CMD_SET_OPTION", uint64(UCMCmdSetOption)},
	{"RDMA_USER_CM_CMD_NOTIFY", uint64(UCMCmdNotify)},
	{"RDMA_USER_CM_CMD_JOIN_IP_MCAST", uint64(UCMCmdJoinIPMcast)},
	{"RDMA_USER_CM_CMD_LEAVE_MCAST", uint64(UCMCmdLeaveMcast)},
	{"RDMA_USER_CM_CMD_MIGRATE_ID", uint64(UCMCmdMigrateID)},
	{"RDMA_USER_CM_CMD_QUERY", uint64(UCMCmdQuery)},
	{"RDMA_USER_CM_CMD_BIND", uint64(UCMCmdBind)},
	{"RDMA_USER_CM_CMD_RESOLVE_ADDR", uint64(UCMCmdResolveAddr)},
	{"RDMA_USER_CM_CMD_JOIN_MCAST", uint64(UCMCmdJoinMcast)},
	{"RDMA_PS_IPOIB", uint64(UCMPSIPoIB)},
	{"RDMA_PS_IB", uint64(UCMPSIB)},
	{"RDMA_PS_TCP", uint64(UCMPSTCP)},
	{"RDMA_PS_UDP", uint64(UCMPSUDP)},
	{"RDMA_MC_JOIN_FLAG_FULLMEMBER", uint64(UCMJoinFullMember)},
	{"RDMA_MC_JOIN_FLAG_SENDONLY_FULLMEMBER", uint64(UCMJoinSendOnlyFullMember)},
	{"RDMA_USER_CM_QUERY_ADDR", uint64(UCMQueryAddr)},
	{"RDMA_USER_CM_QUERY_PATH", uint64(UCMQueryPath)},
	{"RDMA_USER_CM_QUERY_GID", uint64(UCMQueryGID)},
	{"RDMA_OPTION_ID", uint64(UCMLevelID)},
	{"RDMA_OPTION_IB", uint64(UCMLevelIB)},
	{"RDMA_OPTION_ID_TOS", uint64(UCMOptionTOS)},
	{"RDMA_OPTION_ID_REUSEADDR", uint64(UCMOptionReuseAddr)},
	{"RDMA_OPTION_ID_AFONLY", uint64(UCMOptionAFOnly)},
	{"RDMA_OPTION_ID_ACK_TIMEOUT", uint64(UCMOptionAckTimeout)},
	{"RDMA_OPTION_IB_PATH", uint64(UCMOptionIBPath)},
	{"AF_INET", uint64(AFInet)},
	{"AF_INET6", uint64(AFInet6)},
}

func checkUCM(t *testing.T, l layout) {
	checkStructs(t, l, ucmStructs)
	known := map[string]bool{}
	for _, n := range ucmNumbers {
		known[n.c] = true
		want, ok := l.value[n.c]
		require.True(t, ok, n.c)
		require.Equal(t, want, n.v, n.c)
	}
	for c := range l.value {
		require.True(t, known[c], "no Go constant for %s", c)
	}
	require.Equal(t, l.size["ib_user_path_rec"], UCMRouteSize)
	for field, off := range map[string]int{
		"sgid": UCMRouteSGID, "flow_label": UCMRouteFlowLabel, "mtu": UCMRouteMTU, "pkey": UCMRoutePkey, "preference": UCMRoutePreference,
	} {
		require.Equal(t, l.field["ib_user_path_rec"][field].off, off, field)
	}
	require.Equal(t, l.size["sockaddr_in"], SockaddrInSize)
	require.Equal(t, l.size["sockaddr_in6"], SockaddrIn6Size)
}

func TestUCMLiesAsInC(t *testing.T) { checkUCM(t, goldenFile(t, "testdata/ucm.golden")) }

func TestUCMFromHeaders(t *testing.T) {
	checkUCM(t, layoutFromHeaders(t, "testdata/ucm.c", "rdma/rdma_user_cm.h", "rdma/ib_user_sa.h"))
}

// TestUCMMeasured holds offsets that were seen on Linux 6.1 by another program.
func TestUCMMeasured(t *testing.T) {
	for size, want := range map[int]int{
		UCMCreateIDSize: 24, UCMDestroyIDSize: 16, UCMBindSize: 136, UCMResolveAddrSize: 272, UCMQueryAddrRespSize: 280,
		UCMConnectSize: 288, UCMAcceptSize: 296, UCMRejectSize: 264, QPAttrSize: 144, UCMEventRespSize: 336,
	} {
		require.Equal(t, want, size)
	}
	require.EqualValues(t, 8, UCMRejInvalidServiceID)
	require.EqualValues(t, 10, UCMEventDisconnected)
}

func TestSockaddr(t *testing.T) {
	for _, c := range []struct {
		addr string
		size uint16
		head []byte
		back string
	}{
		{"10.1.2.3:7471", 16, []byte{2, 0, 0x1d, 0x2f, 10, 1, 2, 3, 0}, ""},
		{"[::ffff:10.1.2.3]:1", 16, []byte{2, 0, 0, 1, 10, 1, 2, 3}, "10.1.2.3:1"},
		{"[2001:db8::5]:7472", 28, []byte{10, 0, 0x1d, 0x30, 0, 0, 0, 0, 0x20, 1, 0xd, 0xb8}, ""},
		{"[fe80::1%7]:9", 28, []byte{10, 0, 0, 9, 0, 0, 0, 0, 0xfe, 0x80, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 7, 0, 0, 0}, ""},
		{"0.0.0.0:0", 16, []byte{2, 0, 0, 0}, ""},
		{"[::]:0", 28, []byte{10, 0}, ""},
	} {
		s := SockaddrStorage{127: 0xa5}
		a := netip.MustParseAddrPort(c.addr)
		size, err := s.Set(a)
		require.NoError(t, err)
		require.Equal(t, c.size, size)
		require.Equal(t, c.head, s[:len(c.head)], c.addr)
		require.Zero(t, s[127])
		got, err := s.AddrPort()
		require.NoError(t, err)
		if c.back != "" {
			a = netip.MustParseAddrPort(c.back)
		}
		require.Equal(t, a, got)
	}
	var s SockaddrStorage
	_, err := s.AddrPort()
	require.ErrorIs(t, err, ErrFamily)
	_, err = s.Set(netip.AddrPort{})
	require.ErrorIs(t, err, ErrFamily)
	_, err = s.Set(netip.MustParseAddrPort("[fe80::1%eth0]:9"))
	require.ErrorIs(t, err, ErrFamily)
	_, err = s.GID()
	require.ErrorIs(t, err, ErrFamily)
	s = SockaddrStorage{0: AFIB, 8: 0xfe, 23: 1}
	gid, err := s.GID()
	require.NoError(t, err)
	require.Equal(t, [16]byte{0: 0xfe, 15: 1}, gid)
}

// TestSockaddrIn6: an address of the older commands, as the newer have it.
func TestSockaddrIn6(t *testing.T) {
	for family, want := range map[byte]uint16{0: 0, AFInet: SockaddrInSize, AFInet6: SockaddrIn6Size, AFIB: SockaddrIn6Size, 99: SockaddrIn6Size} {
		old := SockaddrIn6{0: family, 27: 0xa5}
		all, size := old.Storage()
		require.Equal(t, want, size, family)
		require.Equal(t, old, all.In6())
		require.Zero(t, [100]byte(all[28:]))
	}
}

func TestUCMEventParam(t *testing.T) {
	var ev UCMEventResp
	conn := UCMConnParam{QPNum: 0x123456, PrivateDataLen: 3, RNRRetryCount: 7}
	copy(conn.PrivateData[:], "abc")
	conn.Put(ev.Param[:])
	got := ev.Conn()
	require.Equal(t, conn, got)
	require.Equal(t, "abc", string(got.Private()))
	require.EqualValues(t, 0x123456, ev.UD().QPNum)
}

func TestAHAttrAsQPDest(t *testing.T) {
	ah := AHAttr{DGID: [16]byte{15: 9}, FlowLabel: 1, SGIDIndex: 2, HopLimit: 3, TrafficClass: 4, DLID: 5, SL: 6, SrcPathBits: 7, StaticRate: 8, IsGlobal: 1, PortNum: 9}
	require.Equal(t, QPDest{DGID: [16]byte{15: 9}, FlowLabel: 1, SGIDIndex: 2, HopLimit: 3, TrafficClass: 4, DLID: 5, SL: 6, SrcPathBits: 7, StaticRate: 8, IsGlobal: 1, PortNum: 9}, ah.QPDest())
}

func TestUCMNames(t *testing.T) {
	require.Equal(t, "CONNECT_REQUEST", UCMEventConnectRequest.String())
	require.Equal(t, "UCMEvent(77)", UCMEvent(77).String())
	require.Equal(t, "INVALID_SERVICE_ID", UCMRejInvalidServiceID.String())
	require.Equal(t, "GET_EVENT", UCMCmdGetEvent.String())
	require.Equal(t, "TCP", UCMPSTCP.String())
}
