#!/usr/bin/env bash
# Boots the systemd of a Debian root in namespaces of its own (mounts, processes, network, cgroup), and stays until that ends.
# usage: tests/packages/boot.sh ROOT CGROUP, as root; CGROUP is an empty directory of the cgroup2 file system
set -euo pipefail
root=$1
echo $$ >"$2/cgroup.procs"
# Whoever kills this process kills the processes of the root, too.
exec unshare --mount --propagation private --pid --fork --kill-child --uts --ipc --net --cgroup bash -euc '
  root=$1
  mount --bind "$root" "$root"
  mount -t proc proc "$root/proc"
  mount -t sysfs -o ro sysfs "$root/sys"
  mount -t cgroup2 cgroup2 "$root/sys/fs/cgroup"
  mount -t tmpfs -o mode=755 tmpfs "$root/run"
  # The devices that PrivateDevices= of a unit takes over.
  mount -t tmpfs -o mode=755 tmpfs "$root/dev"
  for device in null zero full random urandom tty; do cp -a "/dev/$device" "$root/dev/"; done
  mkdir "$root/dev/pts" "$root/dev/shm" "$root/dev/mqueue" "$root/dev/hugepages"
  mount -t devpts -o newinstance,ptmxmode=0666,mode=620 devpts "$root/dev/pts"
  ln -s pts/ptmx "$root/dev/ptmx"
  ln -s /proc/self/fd "$root/dev/fd"
  mount -t tmpfs tmpfs "$root/dev/shm"
  mount -t mqueue mqueue "$root/dev/mqueue"
  ip link set lo up
  hostname rauk-test
  cd "$root"
  mkdir -p old
  pivot_root . old
  umount -l old
  rmdir old
  exec env -i container=unshare PATH=/usr/sbin:/usr/bin:/sbin:/bin /lib/systemd/systemd --unit=multi-user.target
' _ "$root"
