package cli

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestNotInstalled(t *testing.T) {
	for program, name := range map[string]string{
		"ibv_devinfo": "ibverbs-utils", "ib_write_bw": "perftest", "rping": "rdmacm-utils",
		"rdma": "iproute2", "rdma_server": "rdmacm-utils", "ucx_perftest": "ucx-utils",
	} {
		require.EqualError(t, NotInstalled(program), program+" is not installed: apt-get install "+name)
	}
	require.NoError(t, NotInstalled("./ib_mine"))
	require.NoError(t, NotInstalled("ls"))
}
