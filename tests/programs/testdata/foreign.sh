# Runs a command where the machine has another RDMA device, mana_0, whose
# attributes are in DIR/class. DIR/dev is empty. In a mount namespace of its own:
#
#	unshare --mount sh foreign.sh DIR COMMAND…
set -eu
dir=$1
shift
mount --make-rprivate /
mount -t tmpfs none "$dir/dev"
cp -a /dev/null /dev/zero /dev/random /dev/urandom /dev/fd "$dir/dev"
mkdir "$dir/dev/shm" "$dir/dev/infiniband"
: >"$dir/dev/infiniband/uverbs0"
: >"$dir/dev/infiniband/rdma_cm"
mount --bind "$dir/class" /sys/class
mount --bind "$dir/dev" /dev
exec "$@"
