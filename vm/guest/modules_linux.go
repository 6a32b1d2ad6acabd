package guest

import "os/exec"

// loadModules has u-root's modprobe load kernel modules and what they need, all
// in one run since a run takes a while under emulation, and returns what it said
// of those that are not to be had. One that is already there, also as a part of
// the kernel, needs nothing.
func loadModules(names ...string) string {
	said, err := exec.Command("/bbin/modprobe", append([]string{"-a"}, names...)...).CombinedOutput()
	if err != nil {
		return "modprobe: " + err.Error() + ": " + string(said)
	}
	return "modules loaded; " + string(said)
}
