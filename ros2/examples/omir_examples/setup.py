from glob import glob

from setuptools import find_packages, setup

package_name = 'omir_examples'

setup(
    name=package_name,
    version='0.1.0',
    packages=find_packages(exclude=['test']),
    data_files=[
        ('share/ament_index/resource_index/packages', ['resource/' + package_name]),
        ('share/' + package_name, ['package.xml']),
        ('share/' + package_name + '/launch', glob('launch/*.launch.py')),
        ('share/' + package_name + '/config', glob('config/*.toml')),
    ],
    install_requires=['setuptools'],
    zip_safe=True,
    maintainer='The omird maintainers',
    maintainer_email='omird@users.noreply.github.com',
    description='Nodes in Python that remember and recall with omird.',
    license='Apache-2.0',
    entry_points={
        'console_scripts': [
            'remember_and_recall = omir_examples.remember_and_recall:main',
            'go_back_to_charger = omir_examples.go_back_to_charger:main',
        ],
    },
)
