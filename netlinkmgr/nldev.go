package netlinkmgr

import "strconv"

// Numbers of include/uapi/rdma/rdma_netlink.h, under the kernel's names. The
// enumerations only grow, so what a newer kernel adds is unknown here and
// skipped.

// nldevClient is RDMA_NL_NLDEV; a message type is client<<10 | command.
const nldevClient = 5

const clientShift = 10

// Command is an rdma_nldev_command.
type Command uint16

// Commands that the manager sends.
const (
	CmdGet        Command = 1
	CmdSet        Command = 2
	CmdNewLink    Command = 3
	CmdDelLink    Command = 4
	CmdPortGet    Command = 5
	CmdSysGet     Command = 6
	CmdSysSet     Command = 7
	CmdResGet     Command = 9
	CmdResQPGet   Command = 10
	CmdResCMIDGet Command = 11
	CmdResCQGet   Command = 12
	CmdResMRGet   Command = 13
	CmdResPDGet   Command = 14
	CmdGetCharDev Command = 15
	CmdStatGet    Command = 17
	CmdResCtxGet  Command = 22
	CmdResSRQGet  Command = 23
	CmdMonitor    Command = 28 // sent by the kernel
)

var commandNames = map[Command]string{
	CmdGet: "GET", CmdSet: "SET", CmdNewLink: "NEWLINK", CmdDelLink: "DELLINK", CmdPortGet: "PORT_GET",
	CmdSysGet: "SYS_GET", CmdSysSet: "SYS_SET", CmdResGet: "RES_GET", CmdResQPGet: "RES_QP_GET",
	CmdResCMIDGet: "RES_CM_ID_GET", CmdResCQGet: "RES_CQ_GET", CmdResMRGet: "RES_MR_GET",
	CmdResPDGet: "RES_PD_GET", CmdGetCharDev: "GET_CHARDEV", CmdStatGet: "STAT_GET",
	CmdResCtxGet: "RES_CTX_GET", CmdResSRQGet: "RES_SRQ_GET", CmdMonitor: "MONITOR",
}

func (c Command) String() string {
	if s, ok := commandNames[c]; ok {
		return "RDMA_NLDEV_CMD_" + s
	}
	return "RDMA_NLDEV_CMD_" + strconv.Itoa(int(c))
}

// attrType is an rdma_nldev_attr.
type attrType uint16

const (
	attrDevIndex            attrType = 1
	attrDevName             attrType = 2
	attrPortIndex           attrType = 3
	attrCapFlags            attrType = 4
	attrFWVersion           attrType = 5
	attrNodeGUID            attrType = 6
	attrSysImageGUID        attrType = 7
	attrSubnetPrefix        attrType = 8
	attrLID                 attrType = 9
	attrSMLID               attrType = 10
	attrLMC                 attrType = 11
	attrPortState           attrType = 12
	attrPortPhysState       attrType = 13
	attrDevNodeType         attrType = 14
	attrResSummary          attrType = 15
	attrResSummaryEntry     attrType = 16
	attrResSummaryEntryName attrType = 17
	attrResSummaryEntryCurr attrType = 18
	attrResQP               attrType = 19
	attrResQPEntry          attrType = 20
	attrResLQPN             attrType = 21
	attrResRQPN             attrType = 22
	attrResRQPSN            attrType = 23
	attrResSQPSN            attrType = 24
	attrResPathMigState     attrType = 25
	attrResType             attrType = 26
	attrResState            attrType = 27
	attrResPID              attrType = 28
	attrResKernName         attrType = 29
	attrResCMID             attrType = 30
	attrResCMIDEntry        attrType = 31
	attrResPS               attrType = 32
	attrResSrcAddr          attrType = 33
	attrResDstAddr          attrType = 34
	attrResCQ               attrType = 35
	attrResCQEntry          attrType = 36
	attrResCQE              attrType = 37
	attrResUseCnt           attrType = 38
	attrResPollCtx          attrType = 39
	attrResMR               attrType = 40
	attrResMREntry          attrType = 41
	attrResRKey             attrType = 42
	attrResLKey             attrType = 43
	attrResIOVA             attrType = 44
	attrResMRLen            attrType = 45
	attrResPD               attrType = 46
	attrResPDEntry          attrType = 47
	attrResLocalDMALKey     attrType = 48
	attrResUnsafeGlobalRKey attrType = 49
	attrNDevIndex           attrType = 50
	attrNDevName            attrType = 51
	attrDriver              attrType = 52
	attrDriverString        attrType = 54
	attrDriverPrintType     attrType = 55
	attrDriverS32           attrType = 56
	attrDriverU32           attrType = 57
	attrDriverS64           attrType = 58
	attrDriverU64           attrType = 59
	attrResPDN              attrType = 60
	attrResCQN              attrType = 61
	attrResMRN              attrType = 62
	attrResCMIDN            attrType = 63
	attrResCtxN             attrType = 64
	attrLinkType            attrType = 65
	attrSysNetNSMode        attrType = 66
	attrDevProtocol         attrType = 67
	attrCharDevType         attrType = 69
	attrCharDevName         attrType = 70
	attrCharDevABI          attrType = 71
	attrCharDev             attrType = 72
	attrUverbsDriverID      attrType = 73
	attrStatHWCounters      attrType = 80
	attrStatHWCounterEntry  attrType = 81
	attrStatHWCounterName   attrType = 82
	attrStatHWCounterValue  attrType = 83
	attrDevDIM              attrType = 84
	attrResCtx              attrType = 86
	attrResCtxEntry         attrType = 87
	attrResSRQ              attrType = 88
	attrResSRQEntry         attrType = 89
	attrResSRQN             attrType = 90
	attrMinRange            attrType = 91
	attrMaxRange            attrType = 92
	attrSysCopyOnFork       attrType = 93
	attrSysPrivilegedQKey   attrType = 96
	attrResSubtype          attrType = 98
	attrEventType           attrType = 102
	attrSysMonitorMode      attrType = 103
)

// requestAttrNames are the attributes of the requests that the manager sends.
var requestAttrNames = map[attrType]string{
	attrDevIndex: "DEV_INDEX", attrDevName: "DEV_NAME", attrPortIndex: "PORT_INDEX",
	attrLinkType: "LINK_TYPE", attrNDevName: "NDEV_NAME", attrCharDevType: "CHARDEV_TYPE",
	attrSysNetNSMode: "NETNS_MODE",
}
