package netlinkmgr

import (
	"encoding/hex"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestRequests holds whole messages against bytes that Linux 6.1 took from this
// package or from iproute2 (which differ in nothing but sequence numbers).
func TestRequests(t *testing.T) {
	for _, c := range []struct {
		r         Request
		hex, text string
	}{
		{reqNewLink("rxe0", "rxe", "eth0"), "300000000314050000000000000000000900020072786530000000000800410072786500090033006574683000000000",
			`RDMA_NLDEV_CMD_NEWLINK DEV_NAME="rxe0" LINK_TYPE="rxe" NDEV_NAME="eth0"`},
		{reqNewLink("abc", "rxe", "eth"), "28000000031405000000000000000000080002006162630008004100727865000800330065746800",
			`RDMA_NLDEV_CMD_NEWLINK DEV_NAME="abc" LINK_TYPE="rxe" NDEV_NAME="eth"`},
		{reqDelLink(3), "180000000414050000000000000000000800010003000000", "RDMA_NLDEV_CMD_DELLINK DEV_INDEX=3"},
		{reqDevices(), "10000000011405030000000000000000", "RDMA_NLDEV_CMD_GET"},
		{reqPort(0, 1), "2000000005140500000000000000000008000100000000000800030001000000", "RDMA_NLDEV_CMD_PORT_GET DEV_INDEX=0 PORT_INDEX=1"},
		{reqObjects(CmdResCtxGet, 0), "180000001614050300000000000000000800010000000000", "RDMA_NLDEV_CMD_RES_CTX_GET DEV_INDEX=0"},
		{reqSystem(), "10000000061405000000000000000000", "RDMA_NLDEV_CMD_SYS_GET"},
		{reqSetNetNS(true), "180000000714050000000000000000000500420001000000", "RDMA_NLDEV_CMD_SYS_SET NETNS_MODE=1"},
		{reqSetNetNS(false), "180000000714050000000000000000000500420000000000", "RDMA_NLDEV_CMD_SYS_SET NETNS_MODE=0"},
		{reqCharDev(0, "uverbs"), "240000000f140500000000000000000008000100000000000b0045007576657262730000", `RDMA_NLDEV_CMD_GET_CHARDEV DEV_INDEX=0 CHARDEV_TYPE="uverbs"`},
		{Request{Command: 77, Attrs: []byte{5, 0, 99, 0, 1, 0, 0, 0}}, "180000004d140500000000000000000005006300" + "01000000", "RDMA_NLDEV_CMD_77 attribute 99=01"},
	} {
		require.Equal(t, c.hex, hex.EncodeToString(c.r.Message()), c.text)
		require.Equal(t, c.text, c.r.String())
	}
}

// TestNumbers holds the numbers against what a C program prints from the
// kernel's header: testdata/nldev.c, testdata/nldev.golden.
func TestNumbers(t *testing.T) {
	text, err := os.ReadFile("testdata/nldev.golden")
	require.NoError(t, err)
	header := map[string]uint16{}
	for line := range strings.Lines(string(text)) {
		f := strings.Fields(line)
		require.Len(t, f, 2)
		n, err := strconv.ParseUint(f[1], 10, 16)
		require.NoError(t, err)
		header[f[0]] = uint16(n)
	}
	seen := map[string]bool{}
	check := func(name string, n uint16) {
		want, ok := header[name]
		require.True(t, ok, name)
		require.Equal(t, want, n, name)
		seen[name] = true
	}
	for c, name := range commandNames {
		check("CMD_"+name, uint16(c))
	}
	for name, a := range map[string]attrType{
		"ATTR_DEV_INDEX": attrDevIndex, "ATTR_DEV_NAME": attrDevName, "ATTR_PORT_INDEX": attrPortIndex, "ATTR_CAP_FLAGS": attrCapFlags,
		"ATTR_FW_VERSION": attrFWVersion, "ATTR_NODE_GUID": attrNodeGUID, "ATTR_SYS_IMAGE_GUID": attrSysImageGUID, "ATTR_SUBNET_PREFIX": attrSubnetPrefix,
		"ATTR_LID": attrLID, "ATTR_SM_LID": attrSMLID, "ATTR_LMC": attrLMC, "ATTR_PORT_STATE": attrPortState, "ATTR_PORT_PHYS_STATE": attrPortPhysState,
		"ATTR_DEV_NODE_TYPE": attrDevNodeType, "ATTR_RES_SUMMARY": attrResSummary, "ATTR_RES_SUMMARY_ENTRY": attrResSummaryEntry,
		"ATTR_RES_SUMMARY_ENTRY_NAME": attrResSummaryEntryName, "ATTR_RES_SUMMARY_ENTRY_CURR": attrResSummaryEntryCurr,
		"ATTR_RES_QP": attrResQP, "ATTR_RES_QP_ENTRY": attrResQPEntry, "ATTR_RES_LQPN": attrResLQPN, "ATTR_RES_RQPN": attrResRQPN,
		"ATTR_RES_RQ_PSN": attrResRQPSN, "ATTR_RES_SQ_PSN": attrResSQPSN, "ATTR_RES_PATH_MIG_STATE": attrResPathMigState,
		"ATTR_RES_TYPE": attrResType, "ATTR_RES_STATE": attrResState, "ATTR_RES_PID": attrResPID, "ATTR_RES_KERN_NAME": attrResKernName,
		"ATTR_RES_CM_ID": attrResCMID, "ATTR_RES_CM_ID_ENTRY": attrResCMIDEntry, "ATTR_RES_PS": attrResPS, "ATTR_RES_SRC_ADDR": attrResSrcAddr,
		"ATTR_RES_DST_ADDR": attrResDstAddr, "ATTR_RES_CQ": attrResCQ, "ATTR_RES_CQ_ENTRY": attrResCQEntry, "ATTR_RES_CQE": attrResCQE,
		"ATTR_RES_USECNT": attrResUseCnt, "ATTR_RES_POLL_CTX": attrResPollCtx, "ATTR_RES_MR": attrResMR, "ATTR_RES_MR_ENTRY": attrResMREntry,
		"ATTR_RES_RKEY": attrResRKey, "ATTR_RES_LKEY": attrResLKey, "ATTR_RES_IOVA": attrResIOVA, "ATTR_RES_MRLEN": attrResMRLen,
		"ATTR_RES_PD": attrResPD, "ATTR_RES_PD_ENTRY": attrResPDEntry, "ATTR_RES_LOCAL_DMA_LKEY": attrResLocalDMALKey,
		"ATTR_RES_UNSAFE_GLOBAL_RKEY": attrResUnsafeGlobalRKey, "ATTR_NDEV_INDEX": attrNDevIndex, "ATTR_NDEV_NAME": attrNDevName,
		"ATTR_DRIVER": attrDriver, "ATTR_DRIVER_STRING": attrDriverString, "ATTR_DRIVER_PRINT_TYPE": attrDriverPrintType,
		"ATTR_DRIVER_S32": attrDriverS32, "ATTR_DRIVER_U32": attrDriverU32, "ATTR_DRIVER_S64": attrDriverS64, "ATTR_DRIVER_U64": attrDriverU64,
		"ATTR_RES_PDN": attrResPDN, "ATTR_RES_CQN": attrResCQN, "ATTR_RES_MRN": attrResMRN, "ATTR_RES_CM_IDN": attrResCMIDN, "ATTR_RES_CTXN": attrResCtxN,
		"ATTR_LINK_TYPE": attrLinkType, "SYS_ATTR_NETNS_MODE": attrSysNetNSMode, "ATTR_DEV_PROTOCOL": attrDevProtocol,
		"ATTR_CHARDEV_TYPE": attrCharDevType, "ATTR_CHARDEV_NAME": attrCharDevName, "ATTR_CHARDEV_ABI": attrCharDevABI, "ATTR_CHARDEV": attrCharDev,
		"ATTR_UVERBS_DRIVER_ID": attrUverbsDriverID, "ATTR_STAT_HWCOUNTERS": attrStatHWCounters, "ATTR_STAT_HWCOUNTER_ENTRY": attrStatHWCounterEntry,
		"ATTR_STAT_HWCOUNTER_ENTRY_NAME": attrStatHWCounterName, "ATTR_STAT_HWCOUNTER_ENTRY_VALUE": attrStatHWCounterValue,
		"ATTR_DEV_DIM": attrDevDIM, "ATTR_RES_CTX": attrResCtx, "ATTR_RES_CTX_ENTRY": attrResCtxEntry, "SYS_ATTR_COPY_ON_FORK": attrSysCopyOnFork,
		"SYS_ATTR_PRIVILEGED_QKEY_MODE": attrSysPrivilegedQKey, "ATTR_RES_SUBTYPE": attrResSubtype, "SYS_ATTR_MONITOR_MODE": attrSysMonitorMode,
		"ATTR_EVENT_TYPE": attrEventType,
		"ATTR_RES_SRQ":    attrResSRQ, "ATTR_RES_SRQ_ENTRY": attrResSRQEntry, "ATTR_RES_SRQN": attrResSRQN, "ATTR_MIN_RANGE": attrMinRange, "ATTR_MAX_RANGE": attrMaxRange,
	} {
		check(name, uint16(a))
	}
	for name := range header {
		require.True(t, seen[name], "%s is printed but not checked", name)
	}
}
