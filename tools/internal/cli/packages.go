package cli

import (
	"cmp"
	"fmt"
	"strings"
)

// packages are Debian's names of those that have well-known programs. A name
// that ends in an underscore stands for all that begin with it.
var packages = map[string]string{
	"ibv_": "ibverbs-utils", "ib_": "perftest", "rdma_": "rdmacm-utils", "rping": "rdmacm-utils",
	"ucmatose": "rdmacm-utils", "udaddy": "rdmacm-utils", "mckey": "rdmacm-utils", "rcopy": "rdmacm-utils",
	"rstream": "rdmacm-utils", "riostream": "rdmacm-utils", "rdma": "iproute2", "ucx_": "ucx-utils",
	"fi_": "libfabric-bin", "mpirun": "openmpi-bin", "iperf3": "iperf3",
}

// NotInstalled is the error for a well-known program that is not there: it
// names the program's package. It is nil for others.
func NotInstalled(program string) error {
	family, _, _ := strings.Cut(program, "_")
	if p := cmp.Or(packages[program], packages[family+"_"]); p != "" {
		return fmt.Errorf("%s is not installed: apt-get install %s", program, p)
	}
	return nil
}
