package trace

import "strings"

// fieldNames are the kernel's names that the rule of snake does not give.
var fieldNames = map[string]string{
	"HCAVA": "hca_va", "LKey": "lkey", "RKey": "rkey", "QKey": "qkey",
	"RQPSN": "rq_psn", "SQPSN": "sq_psn", "WRID": "wr_id", "RQMI": "rq_mi", "SQMI": "sq_mi",
	"SMLID": "sm_lid", "SMSL": "sm_sl",
	"MaxQPWR": "max_qp_wr", "MaxSRQWR": "max_srq_wr", "MaxSRQSGE": "max_srq_sge",
	"MaxRawIPv6QP": "max_raw_ipv6_qp",
	"IBDevIndex":   "ibdev_index", "OptVal": "optval", "OptName": "optname", "OptLen": "optlen",
}

// fieldName is the kernel's name of a field of kshim/abi: max_send_wr for
// MaxSendWR.
func fieldName(name string) string {
	if s, ok := fieldNames[name]; ok {
		return s
	}
	return snake(name)
}

// snake puts an underscore where a word begins: at a capital after a small
// letter or a digit, and at a capital before a small letter.
func snake(name string) string {
	var b strings.Builder
	for i := range len(name) {
		if i > 0 && isUpper(name[i]) && (!isUpper(name[i-1]) || i+1 < len(name) && isLower(name[i+1])) {
			b.WriteByte('_')
		}
		b.WriteByte(name[i])
	}
	return strings.ToLower(b.String())
}

func isUpper(c byte) bool { return 'A' <= c && c <= 'Z' }
func isLower(c byte) bool { return 'a' <= c && c <= 'z' }
