"""Start omird and a node that remembers and recalls; the router (rmw_zenohd) runs already."""

from launch import LaunchDescription
from launch.actions import DeclareLaunchArgument, ExecuteProcess
from launch.substitutions import EnvironmentVariable, LaunchConfiguration, PathJoinSubstitution
from launch_ros.actions import Node
from launch_ros.substitutions import FindPackageShare


def generate_launch_description():
    return LaunchDescription([
        DeclareLaunchArgument(
            'config',
            default_value=PathJoinSubstitution(
                [FindPackageShare('omir_examples'), 'config', 'omird.toml']),
            description='configuration of omird'),
        DeclareLaunchArgument(
            'data',
            default_value=PathJoinSubstitution(
                [EnvironmentVariable('HOME'), '.local', 'state', 'omird']),
            description='folder of the memories'),
        ExecuteProcess(
            name='omird',
            cmd=[
                'omird',
                '--config', LaunchConfiguration('config'),
                '--data', LaunchConfiguration('data'),
            ],
            # It writes what it has to the card before it goes.
            sigterm_timeout='30',
            output='screen'),
        # It waits for the services of omird by itself.
        Node(
            package='omir_examples',
            executable='remember_and_recall',
            output='screen'),
    ])
