package main

import "strings"

// initialisms are the words of C names that Go names write in capitals.
var initialisms = strings.Fields(`
	AF AH AV BNXT CA CM CQ CQE CXGB3 CXGB4 DGID DLID DM DMA ECE EE EEC EECN
	EFA ERDMA ESP FD FMR FW GID GRH GUID HCA HFI1 HNS HW IB ID IOVA IP IRDMA
	LID LMC LSO MI MLX4 MLX5 MR MS MTHCA MTU MW NES OCRDMA OK PD PS PSN PVRDMA
	QEDR QIB QP QPN RC RDC RDD RDMA RE RNIC RNR RQ RTR RTS RWQ RXE SGE SGID
	SIW SL SLID SM SMR SQ SQD SQE SRQ SSN TCP TOS TSO UC UD UDP UHW UID USNIC
	VA VL VMW WC WQ WQE WR XRC XRCD XSRQ`)

// spellings are the words with both.
var spellings = map[string]string{
	"dmabuf": "DMABuf", "ibdev": "IBDev", "infiniband": "InfiniBand", "ipoib": "IPoIB",
	"ipv6": "IPv6", "lkey": "LKey", "qkey": "QKey", "rkey": "RKey", "roce": "RoCE",
	"v1": "v1", "v2": "v2",
}

func init() {
	for _, word := range initialisms {
		spellings[strings.ToLower(word)] = word
	}
}

// goName makes a Go name out of a C name: max_qp_wr becomes MaxQPWR.
func goName(c string) string {
	var b strings.Builder
	for word := range strings.FieldsFuncSeq(strings.ToLower(c), func(r rune) bool { return r == '_' || r == '.' }) {
		if s, ok := spellings[word]; ok {
			b.WriteString(s)
		} else {
			b.WriteString(strings.ToUpper(word[:1]) + word[1:])
		}
	}
	return b.String()
}
