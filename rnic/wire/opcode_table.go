package wire

// fact is a row of the opcode table. Everything else that is to be known about
// an opcode (service, length, direction, suffix) follows from these.
type fact struct {
	name      string
	operation Operation
	position  Position
	headers   Headers
}

// table holds the opcodes of IBA 9.2.1 and the extended headers that go with
// them; FLUSH and ATOMIC WRITE are of annex A19, CNP of A17.
var table = [256]fact{
	RCSendFirst:    {"RC SEND_FIRST", OpSend, First, 0},
	RCSendMiddle:   {"RC SEND_MIDDLE", OpSend, Middle, 0},
	RCSendLast:     {"RC SEND_LAST", OpSend, Last, 0},
	RCSendLastImm:  {"RC SEND_LAST_WITH_IMMEDIATE", OpSend, Last, HasImmDt},
	RCSendOnly:     {"RC SEND_ONLY", OpSend, Only, 0},
	RCSendOnlyImm:  {"RC SEND_ONLY_WITH_IMMEDIATE", OpSend, Only, HasImmDt},
	RCSendLastInv:  {"RC SEND_LAST_WITH_INVALIDATE", OpSend, Last, HasIETH},
	RCSendOnlyInv:  {"RC SEND_ONLY_WITH_INVALIDATE", OpSend, Only, HasIETH},
	RCWriteFirst:   {"RC RDMA_WRITE_FIRST", OpWrite, First, HasRETH},
	RCWriteMiddle:  {"RC RDMA_WRITE_MIDDLE", OpWrite, Middle, 0},
	RCWriteLast:    {"RC RDMA_WRITE_LAST", OpWrite, Last, 0},
	RCWriteLastImm: {"RC RDMA_WRITE_LAST_WITH_IMMEDIATE", OpWrite, Last, HasImmDt},
	RCWriteOnly:    {"RC RDMA_WRITE_ONLY", OpWrite, Only, HasRETH},
	RCWriteOnlyImm: {"RC RDMA_WRITE_ONLY_WITH_IMMEDIATE", OpWrite, Only, HasRETH | HasImmDt},

	RCReadRequest:        {"RC RDMA_READ_REQUEST", OpRead, Only, HasRETH},
	RCReadResponseFirst:  {"RC RDMA_READ_RESPONSE_FIRST", OpReadResponse, First, HasAETH},
	RCReadResponseMiddle: {"RC RDMA_READ_RESPONSE_MIDDLE", OpReadResponse, Middle, 0},
	RCReadResponseLast:   {"RC RDMA_READ_RESPONSE_LAST", OpReadResponse, Last, HasAETH},
	RCReadResponseOnly:   {"RC RDMA_READ_RESPONSE_ONLY", OpReadResponse, Only, HasAETH},
	RCAck:                {"RC ACKNOWLEDGE", OpAck, Only, HasAETH},
	RCAtomicAck:          {"RC ATOMIC_ACKNOWLEDGE", OpAtomicAck, Only, HasAETH | HasAtomicAckETH},
	RCCompareSwap:        {"RC COMPARE_SWAP", OpCompareSwap, Only, HasAtomicETH},
	RCFetchAdd:           {"RC FETCH_ADD", OpFetchAdd, Only, HasAtomicETH},
	RCFlush:              {"RC FLUSH", OpFlush, Only, HasFETH | HasRETH},
	RCAtomicWrite:        {"RC ATOMIC_WRITE", OpAtomicWrite, Only, HasRETH},

	UCSendFirst:    {"UC SEND_FIRST", OpSend, First, 0},
	UCSendMiddle:   {"UC SEND_MIDDLE", OpSend, Middle, 0},
	UCSendLast:     {"UC SEND_LAST", OpSend, Last, 0},
	UCSendLastImm:  {"UC SEND_LAST_WITH_IMMEDIATE", OpSend, Last, HasImmDt},
	UCSendOnly:     {"UC SEND_ONLY", OpSend, Only, 0},
	UCSendOnlyImm:  {"UC SEND_ONLY_WITH_IMMEDIATE", OpSend, Only, HasImmDt},
	UCWriteFirst:   {"UC RDMA_WRITE_FIRST", OpWrite, First, HasRETH},
	UCWriteMiddle:  {"UC RDMA_WRITE_MIDDLE", OpWrite, Middle, 0},
	UCWriteLast:    {"UC RDMA_WRITE_LAST", OpWrite, Last, 0},
	UCWriteLastImm: {"UC RDMA_WRITE_LAST_WITH_IMMEDIATE", OpWrite, Last, HasImmDt},
	UCWriteOnly:    {"UC RDMA_WRITE_ONLY", OpWrite, Only, HasRETH},
	UCWriteOnlyImm: {"UC RDMA_WRITE_ONLY_WITH_IMMEDIATE", OpWrite, Only, HasRETH | HasImmDt},

	UDSendOnly:    {"UD SEND_ONLY", OpSend, Only, HasDETH},
	UDSendOnlyImm: {"UD SEND_ONLY_WITH_IMMEDIATE", OpSend, Only, HasDETH | HasImmDt},

	CNP: {"CNP", OpCongestion, Only, HasCNP},
}

// headerLen is table's lengths summed up once.
var headerLen = func() (n [256]uint8) {
	for op := range table {
		if Opcode(op).Known() {
			n[op] = BTHLen + uint8(table[op].headers.Length())
		}
	}
	return n
}()

// opcodeIndex is table the other way round; 0 is no opcode, else opcode + 1.
var opcodeIndex = func() (x [numServices][numOperations][numPositions][numSuffixes]uint16) {
	for i := range table {
		if op := Opcode(i); op.Known() {
			x[op.Service()][op.Operation()][op.Position()][op.Suffix()] = uint16(op) + 1
		}
	}
	return x
}()
