package guest

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/vishvananda/netlink"
)

// ensureLink creates the rxe link and waits until it can be used.
func ensureLink(ctx context.Context, name, netdev string, step func(string, ...any)) error {
	for _, m := range []string{"crc32_generic", "rdma_rxe"} {
		if err := loadModule(m); err != nil {
			step("module %s: %v", m, err)
		}
	}
	if err := netlink.RdmaLinkAdd(name, "rxe", netdev); err != nil {
		return err
	}
	step("link %s: created on %s", name, netdev)
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	port := "/sys/class/infiniband/" + name + "/ports/1"
	for {
		state, _ := os.ReadFile(port + "/state")
		if i, gid := usableGID(port); i >= 0 && bytes.Contains(state, []byte("ACTIVE")) {
			step("link %s: port ACTIVE, GID %d %s", name, i, gid)
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("port state %q, no usable RoCE v2 GID", bytes.TrimSpace(state))
		case <-time.After(10 * time.Millisecond):
		}
	}
}

func usableGID(port string) (int, string) {
	for i := range 16 {
		gid, err := os.ReadFile(fmt.Sprintf("%s/gids/%d", port, i))
		if err != nil {
			break
		}
		kind, _ := os.ReadFile(filepath.Join(port, "gid_attrs/types", fmt.Sprint(i)))
		if strings.Trim(string(gid), "0:\n") != "" && strings.Contains(string(kind), "v2") {
			return i, strings.TrimSpace(string(gid))
		}
	}
	return -1, ""
}
