package suite

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// ServeNVMet has the kernel, with its module nvmet_rdma, serve a block device
// by NVMe over RDMA at port 4420 of an address, in a subsystem with that name.
func ServeNVMet(name, addr, device string) error {
	if err := unix.Mount("configfs", "/sys/kernel/config", "configfs", 0, ""); err != nil && err != unix.EBUSY {
		return err
	}
	put := func(file, value string) error { return os.WriteFile(file, []byte(value), 0) }
	const base = "/sys/kernel/config/nvmet"
	const port = base + "/ports/1"
	subsystem := base + "/subsystems/" + name
	return errors.Join(
		os.Mkdir(subsystem, 0o755), put(subsystem+"/attr_allow_any_host", "1"),
		os.Mkdir(subsystem+"/namespaces/1", 0o755), put(subsystem+"/namespaces/1/device_path", device), put(subsystem+"/namespaces/1/enable", "1"),
		os.Mkdir(port, 0o755), put(port+"/addr_trtype", "rdma"), put(port+"/addr_adrfam", "ipv4"),
		put(port+"/addr_traddr", addr), put(port+"/addr_trsvcid", "4420"),
		os.Symlink(subsystem, port+"/subsystems/"+name))
}
