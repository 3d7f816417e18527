package substrate

import (
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// pidfdInfo is struct pidfd_info of linux/pidfd.h (Linux 6.13; the exit code is filled in since 6.15).
type pidfdInfo struct {
	mask                                             uint64
	cgroup                                           uint64
	pid, tgid, ppid                                  uint32
	ruid, rgid, euid, egid, suid, sgid, fsuid, fsgid uint32
	exitCode                                         int32
}

const (
	pidfdInfoExit = 1 << 3
	// pidfdGetInfo is _IOWR(0xFF, 11, struct pidfd_info) with the first published size of 64 bytes; the kernel takes
	// the size from the number and fills that much.
	pidfdGetInfo = 0xC0000000 | infoSize<<16 | 0xFF<<8 | 11
	infoSize     = 64
)

// exitOfPidfd learns the exit code of an ended process that was not our child. The kernel keeps it for open pidfds
// once the parent has reaped the process; older kernels do not.
func exitOfPidfd(raw syscall.RawConn) Exit {
	info := pidfdInfo{mask: pidfdInfoExit}
	var errno unix.Errno
	err := raw.Control(func(fd uintptr) {
		_, _, errno = unix.Syscall(unix.SYS_IOCTL, fd, pidfdGetInfo, uintptr(unsafe.Pointer(&info)))
	})
	if err != nil || errno != 0 || info.mask&pidfdInfoExit == 0 {
		return Exit{Unknown: true}
	}
	status := syscall.WaitStatus(uint32(info.exitCode))
	if status.Signaled() {
		return Exit{Code: -1, Signal: unix.SignalName(status.Signal())}
	}
	return Exit{Code: status.ExitStatus()}
}
