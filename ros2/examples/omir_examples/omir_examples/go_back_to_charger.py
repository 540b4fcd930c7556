"""
Go back to where the charger was.

omird is asked for the latest memory of the charger that has a place in the map, and Nav2 drives
there. The memory may be of last week: after a loop closure and a rebase its place is where the
charger is in the map of today.
"""

from geometry_msgs.msg import PoseStamped
from nav2_simple_commander.robot_navigator import BasicNavigator, TaskResult
from omir_msgs.msg import MemoryRecord
from omir_msgs.srv import Recall
import rclpy


def recall_charger(navigator: BasicNavigator, name: str) -> Recall.Response:
    client = navigator.create_client(Recall, 'omird/recall')
    while not client.wait_for_service(timeout_sec=2.0):
        navigator.info('waiting for omird/recall')
    request = Recall.Request()
    request.filter.entities = [f'Entity/{name}']
    request.filter.types = ['MemoryRecord']
    request.limit = 20
    future = client.call_async(request)
    rclpy.spin_until_future_complete(navigator, future, timeout_sec=10.0)
    if not future.done():
        raise TimeoutError('omird did not answer')
    return future.result()


def when(record: MemoryRecord):
    """Return the time at which the pose of a memory held, else that of the memory."""
    for stamp in (record.pose.header.stamp, record.event_time, record.created_at):
        if stamp.sec:
            return (stamp.sec, stamp.nanosec)
    return (0, 0)


def latest_in(frame: str, response: Recall.Response) -> MemoryRecord | None:
    records = [
        record
        for hit in response.hits
        for record in hit.resource.record
        if record.pose.header.frame_id == frame
    ]
    return max(records, key=when, default=None)


def goal_of(record: MemoryRecord, navigator: BasicNavigator) -> PoseStamped:
    goal = PoseStamped()
    goal.header.frame_id = record.pose.header.frame_id
    # Where it is in the map does not depend on when we go.
    goal.header.stamp = navigator.get_clock().now().to_msg()
    goal.pose = record.pose.pose.pose
    turned = goal.pose.orientation
    if not any((turned.x, turned.y, turned.z, turned.w)):
        turned.w = 1.0  # all zeros: not known
    return goal


def main(args=None):
    rclpy.init(args=args)
    navigator = BasicNavigator('go_back_to_charger')
    try:
        navigator.declare_parameter('entity', 'charger')
        navigator.declare_parameter('frame', 'map')
        frame = navigator.get_parameter('frame').value
        response = recall_charger(navigator, navigator.get_parameter('entity').value)
        if not response.status.ok:
            navigator.error(f'{response.status.code}: {response.status.message}')
            return 1
        record = latest_in(frame, response)
        if record is None:
            navigator.error(f'none of {response.total} memories has a place in {frame}')
            return 1
        navigator.info(f'going where it was: {record.content}')

        # Not for AMCL, the default: a robot with slam_toolbox has none, and while AMCL has told no pose yet,
        # this would tell it that the robot stands at the origin of the map. Nav2 has this word for "do not wait
        # for the localizer".
        navigator.waitUntilNav2Active(localizer='robot_localization')
        navigator.goToPose(goal_of(record, navigator))
        while not navigator.isTaskComplete():
            feedback = navigator.getFeedback()
            if feedback:
                navigator.info(f'{feedback.distance_remaining:.1f} m to go')
        return 0 if navigator.getResult() == TaskResult.SUCCEEDED else 1
    except KeyboardInterrupt:
        navigator.cancelTask()
        return 130
    finally:
        navigator.destroyNode()
        rclpy.try_shutdown()


if __name__ == '__main__':
    raise SystemExit(main())
