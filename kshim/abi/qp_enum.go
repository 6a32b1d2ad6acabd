package abi

// QPType is the transport service of a queue pair: enum ib_uverbs_qp_type.
type QPType uint8

const (
	QPTRC        QPType = 2
	QPTUC        QPType = 3
	QPTUD        QPType = 4
	QPTRawPacket QPType = 8
	QPTXRCIni    QPType = 9
	QPTXRCTgt    QPType = 10
	QPTDriver    QPType = 255
)

var qpTypeNames = map[QPType]string{
	QPTRC:        "RC",
	QPTUC:        "UC",
	QPTUD:        "UD",
	QPTRawPacket: "RAW_PACKET",
	QPTXRCIni:    "XRC_INI",
	QPTXRCTgt:    "XRC_TGT",
	QPTDriver:    "DRIVER",
}

// String gives the kernel's name without its prefix, or QPType(n).
func (v QPType) String() string { return enumString(qpTypeNames, v, "QPType") }

// QPState is the state of a queue pair: enum ib_qp_state (IBA 10.3.1).
type QPState uint8

const (
	QPSReset QPState = 0
	QPSInit  QPState = 1
	QPSRTR   QPState = 2
	QPSRTS   QPState = 3
	QPSSQD   QPState = 4
	QPSSQE   QPState = 5
	QPSErr   QPState = 6
)

var qpStateNames = map[QPState]string{
	QPSReset: "RESET",
	QPSInit:  "INIT",
	QPSRTR:   "RTR",
	QPSRTS:   "RTS",
	QPSSQD:   "SQD",
	QPSSQE:   "SQE",
	QPSErr:   "ERR",
}

// String gives the kernel's name without its prefix, or QPState(n).
func (v QPState) String() string { return enumString(qpStateNames, v, "QPState") }

// MigState is the path migration state: enum ib_mig_state.
type MigState uint8

const (
	MigMigrated MigState = 0
	MigRearm    MigState = 1
	MigArmed    MigState = 2
)

var migStateNames = map[MigState]string{
	MigMigrated: "MIGRATED",
	MigRearm:    "REARM",
	MigArmed:    "ARMED",
}

// String gives the kernel's name without its prefix, or MigState(n).
func (v MigState) String() string { return enumString(migStateNames, v, "MigState") }

// QPAttrMask is which fields a MODIFY_QP or QUERY_QP means: enum ib_qp_attr_mask.
type QPAttrMask uint32

const (
	QPMaskState            QPAttrMask = 0x1
	QPMaskCurState         QPAttrMask = 0x2
	QPMaskEnSQDAsyncNotify QPAttrMask = 0x4
	QPMaskAccessFlags      QPAttrMask = 0x8
	QPMaskPkeyIndex        QPAttrMask = 0x10
	QPMaskPort             QPAttrMask = 0x20
	QPMaskQKey             QPAttrMask = 0x40
	QPMaskAV               QPAttrMask = 0x80
	QPMaskPathMTU          QPAttrMask = 0x100
	QPMaskTimeout          QPAttrMask = 0x200
	QPMaskRetryCnt         QPAttrMask = 0x400
	QPMaskRNRRetry         QPAttrMask = 0x800
	QPMaskRQPSN            QPAttrMask = 0x1000
	QPMaskMaxQPRdAtomic    QPAttrMask = 0x2000
	QPMaskAltPath          QPAttrMask = 0x4000
	QPMaskMinRNRTimer      QPAttrMask = 0x8000
	QPMaskSQPSN            QPAttrMask = 0x10000
	QPMaskMaxDestRdAtomic  QPAttrMask = 0x20000
	QPMaskPathMigState     QPAttrMask = 0x40000
	QPMaskCap              QPAttrMask = 0x80000
	QPMaskDestQPN          QPAttrMask = 0x100000
)

var qpAttrMaskNames = []flagName{
	{uint32(QPMaskState), "STATE"},
	{uint32(QPMaskCurState), "CUR_STATE"},
	{uint32(QPMaskEnSQDAsyncNotify), "EN_SQD_ASYNC_NOTIFY"},
	{uint32(QPMaskAccessFlags), "ACCESS_FLAGS"},
	{uint32(QPMaskPkeyIndex), "PKEY_INDEX"},
	{uint32(QPMaskPort), "PORT"},
	{uint32(QPMaskQKey), "QKEY"},
	{uint32(QPMaskAV), "AV"},
	{uint32(QPMaskPathMTU), "PATH_MTU"},
	{uint32(QPMaskTimeout), "TIMEOUT"},
	{uint32(QPMaskRetryCnt), "RETRY_CNT"},
	{uint32(QPMaskRNRRetry), "RNR_RETRY"},
	{uint32(QPMaskRQPSN), "RQ_PSN"},
	{uint32(QPMaskMaxQPRdAtomic), "MAX_QP_RD_ATOMIC"},
	{uint32(QPMaskAltPath), "ALT_PATH"},
	{uint32(QPMaskMinRNRTimer), "MIN_RNR_TIMER"},
	{uint32(QPMaskSQPSN), "SQ_PSN"},
	{uint32(QPMaskMaxDestRdAtomic), "MAX_DEST_RD_ATOMIC"},
	{uint32(QPMaskPathMigState), "PATH_MIG_STATE"},
	{uint32(QPMaskCap), "CAP"},
	{uint32(QPMaskDestQPN), "DEST_QPN"},
}

// String lists the flags by name, joined by "|"; unknown bits in hexadecimal.
func (v QPAttrMask) String() string { return flagString(uint32(v), qpAttrMaskNames) }
