package uapi

// CheckDevice says whether Open understands a device name and its options
// (EINVAL with the reason if not), without opening anything: the device need
// not be there. An empty name is the default, as for Open.
func CheckDevice(device string) error {
	if device == "" {
		device = defaultDeviceName()
	}
	if _, err := parseDevice(device); err != nil {
		return opError("CheckDevice", device, err)
	}
	return nil
}
